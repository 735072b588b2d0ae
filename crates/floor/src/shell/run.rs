//! Follows a script's commands in the order in which they run for certain.

use crate::files::{join, Files};
use crate::limits::{COMMANDS_MAX, DEPTH_MAX, SCRIPT_LEN_MAX};
use crate::process::{self, Process, Push, UNKNOWN};
use crate::shell::token::{tokens, Piece, Token};
use crate::shell::word::{expand, expand_whole, Scope};
use std::collections::BTreeMap;

/// Judges a script; `arguments` begin with `$0`.
pub(crate) fn judge(
    script: &str,
    arguments: &[String],
    process: &Process,
    files: &dyn Files,
    depth: usize,
) -> Option<Push> {
    let mut shell = Shell {
        files,
        depth,
        folder: Some(process.folder.clone()),
        variables: process.variables.clone(),
        arguments: if arguments.is_empty() { vec!["sh".to_owned()] } else { arguments.to_vec() },
        functions: BTreeMap::new(),
        commands: 0,
        is_over: false,
    };
    shell.run_text(script)
}

#[derive(Clone)]
struct Shell<'call> {
    files: &'call dyn Files,
    depth: usize,
    /// Working directory; none after a `cd` that cannot be followed.
    folder: Option<String>,
    variables: BTreeMap<String, String>,
    arguments: Vec<String>,
    functions: BTreeMap<String, Vec<Token>>,
    commands: usize,
    /// `exit` or `return` was reached.
    is_over: bool,
}

/// Commands that ask something: what follows their `&&` may not run.
const QUESTIONS: [&str; 10] = ["[", "[[", "cmp", "command", "diff", "false", "grep", "test", "type", "which"];

/// Where a run through tokens stands.
#[derive(Default)]
struct Course {
    words: Vec<Vec<Piece>>,
    /// Bodies of `if`, loops and `case` around us.
    conditions: usize,
    /// Behind a `||`, or behind a question's `&&`.
    is_doubtful: bool,
    /// Subshells around us: what to go back to.
    outer: Vec<(Option<String>, BTreeMap<String, String>)>,
}

impl<'call> Shell<'call> {
    fn run_text(&mut self, script: &str) -> Option<Push> {
        if script.len() > SCRIPT_LEN_MAX || self.depth > DEPTH_MAX {
            return None;
        }
        self.run(&tokens(script))
    }

    fn run(&mut self, tokens: &[Token]) -> Option<Push> {
        let mut course = Course::default();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token {
                Token::Redirect => at += usize::from(matches!(tokens.get(at), Some(Token::Word(_)))),
                Token::Word(pieces) => {
                    let keyword = if course.words.is_empty() { token.plain() } else { None };
                    if let Some(len) = self.function(keyword, &tokens[at..]) {
                        at += len;
                    } else if !keyword.is_some_and(|word| is_keyword(word, &mut course)) {
                        course.words.push(pieces.clone());
                    }
                }
                Token::Operator(operator) => {
                    if let Some(push) = self.end_command(operator, &mut course) {
                        return Some(push);
                    }
                }
            }
            if self.is_over {
                return None;
            }
        }
        self.end_command("\n", &mut course)
    }

    /// A definition `name() { … }` is kept and not run. Returns how many tokens it has behind its name.
    fn function(&mut self, name: Option<&str>, rest: &[Token]) -> Option<usize> {
        let (name, [Token::Operator("("), Token::Operator(")"), after @ ..]) = (name?, rest) else { return None };
        let ends = after.iter().take_while(|token| **token == Token::Operator("\n")).count();
        if after.get(ends)?.plain() != Some("{") {
            return None;
        }
        let body = &after[ends + 1..];
        let mut depth = 1;
        let close = body.iter().position(|token| {
            depth += match token.plain() {
                Some("{") => 1,
                Some("}") => -1,
                _ => 0,
            };
            depth == 0
        })?;
        self.functions.insert(name.to_owned(), body[..close].to_vec());
        Some(2 + ends + 1 + close + 1)
    }

    /// An operator ends a command, which is followed if it runs for certain.
    fn end_command(&mut self, operator: &str, course: &mut Course) -> Option<Push> {
        let words = std::mem::take(&mut course.words);
        let is_certain = course.conditions == 0 && !course.is_doubtful;
        let first = words.first().map(|pieces| expand_whole(pieces, &self.scope())).unwrap_or_default();
        if is_certain && !words.is_empty() {
            if let Some(push) = self.command(&words) {
                return Some(push);
            }
        }
        match operator {
            "||" => course.is_doubtful = true,
            "&&" => course.is_doubtful |= QUESTIONS.contains(&first.as_str()),
            "(" => course.outer.push((self.folder.clone(), self.variables.clone())),
            ")" => {
                if let Some((folder, variables)) = course.outer.pop() {
                    self.folder = folder;
                    self.variables = variables;
                }
            }
            "|" => {}
            _ => course.is_doubtful = false,
        }
        None
    }

    fn scope(&self) -> Scope<'_> {
        Scope { variables: &self.variables, arguments: &self.arguments }
    }

    /// A simple command: assignments, then words.
    fn command(&mut self, words: &[Vec<Piece>]) -> Option<Push> {
        self.commands += 1;
        if self.commands > COMMANDS_MAX {
            return None;
        }
        for piece in words.iter().flatten() {
            if let Piece::Script { text } = piece {
                let mut inner = Shell { depth: self.depth + 1, ..self.clone() };
                if let Some(push) = inner.run_text(text) {
                    return Some(push);
                }
            }
        }
        let mut assigned = Vec::new();
        let mut rest = words;
        while let [word, others @ ..] = rest {
            let Some((name, value)) = assignment(word) else { break };
            assigned.push((name, expand_whole(&value, &self.scope())));
            rest = others;
        }
        let expanded: Vec<String> = rest.iter().flat_map(|word| expand(word, &self.scope())).collect();
        if expanded.is_empty() {
            self.variables.extend(assigned);
            return None;
        }
        self.simple(&expanded, assigned)
    }

    fn simple(&mut self, words: &[String], assigned: Vec<(String, String)>) -> Option<Push> {
        let [name, rest @ ..] = words else { return None };
        match name.as_str() {
            "cd" | "pushd" => self.change_folder(rest),
            "export" | "local" | "readonly" | "declare" | "typeset" => {
                for (name, value) in rest.iter().filter_map(|word| word.split_once('=')) {
                    self.variables.insert(name.to_owned(), value.to_owned());
                }
            }
            "unset" => rest.iter().for_each(|name| drop(self.variables.remove(name))),
            "exit" | "return" => self.is_over = true,
            "set" => {
                if let Some(at) = rest.iter().position(|word| word == "--") {
                    self.arguments.truncate(1);
                    self.arguments.extend_from_slice(&rest[at + 1..]);
                }
            }
            "eval" => {
                self.depth += 1;
                let found = self.run_text(&rest.join(" "));
                self.depth -= 1;
                return found;
            }
            name if self.functions.contains_key(name) => return self.call(name, rest),
            _ => return self.start(words, assigned),
        }
        None
    }

    fn change_folder(&mut self, words: &[String]) {
        let target = words.iter().find(|word| !word.starts_with('-') || *word == "-").cloned();
        let target = target.or_else(|| self.variables.get("HOME").cloned());
        self.folder = match (&self.folder, target) {
            (Some(folder), Some(target)) if !target.contains(UNKNOWN) && target != "-" => Some(join(folder, &target)),
            _ => None,
        };
    }

    fn call(&mut self, name: &str, rest: &[String]) -> Option<Push> {
        let body = self.functions.get(name)?.clone();
        if self.depth >= DEPTH_MAX {
            return None;
        }
        let mut arguments = vec![self.arguments.first().cloned().unwrap_or_default()];
        arguments.extend_from_slice(rest);
        let outer = std::mem::replace(&mut self.arguments, arguments);
        self.depth += 1;
        let found = self.run(&body);
        self.depth -= 1;
        self.arguments = outer;
        // A function's `return` ends the function alone.
        self.is_over = false;
        found
    }

    fn start(&self, words: &[String], assigned: Vec<(String, String)>) -> Option<Push> {
        let folder = self.folder.clone()?;
        let mut variables = self.variables.clone();
        variables.extend(assigned);
        let process = Process { words: words.to_vec(), folder, variables };
        process::judge_at(&process, self.files, self.depth + 1)
    }
}

/// Takes words of the grammar; true if the word was one.
fn is_keyword(word: &str, course: &mut Course) -> bool {
    match word {
        "then" | "do" | "case" => course.conditions += 1,
        "fi" | "done" | "esac" => course.conditions = course.conditions.saturating_sub(1),
        "for" | "select" => {
            // The name and the list that follow are no command: they are read as one inside a condition.
            course.is_doubtful = true;
        }
        "if" | "while" | "until" | "else" | "{" | "}" | "!" | "time" => {}
        "elif" => course.is_doubtful = true,
        _ => return false,
    }
    true
}

/// `name=value` at the beginning of a command.
fn assignment(word: &[Piece]) -> Option<(String, Vec<Piece>)> {
    let [Piece::Text { text, is_quoted: false }, rest @ ..] = word else { return None };
    let (name, value) = text.split_once('=')?;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if name.is_empty() || name.starts_with(|letter: char| letter.is_ascii_digit()) || !name.chars().all(is_name) {
        return None;
    }
    let mut pieces = vec![Piece::Text { text: value.to_owned(), is_quoted: true }];
    pieces.extend_from_slice(rest);
    Some((name.to_owned(), pieces))
}

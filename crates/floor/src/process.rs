//! A program that is about to start: the push that it would make, found through what may stand in front of `git`.
//!
//! Followed are shells with `-c`, `env`, and programs that only run another one. What cannot be read for certain (a word that a
//! program makes, a branch of an `if`) is let through: git itself is watched for those, and has no way out in any case.

use crate::files::{join, Files};
use crate::git;
use crate::limits::DEPTH_MAX;
use crate::shell;
use std::collections::BTreeMap;

/// Stands in a word for what cannot be known before the program runs.
pub const UNKNOWN: char = '\u{fffd}';

/// A program as it would start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Program and arguments.
    pub words: Vec<String>,
    /// Working directory, absolute.
    pub folder: String,
    pub variables: BTreeMap<String, String>,
}

/// A push that leaves this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Push {
    /// The git command, as it would start.
    pub command: Vec<String>,
    pub remote: String,
    pub url: String,
    pub folder: String,
}

/// The first push to another machine that a program would make.
///
/// ```
/// use hermetic_floor::files::Imagined;
/// use hermetic_floor::process::{judge, Process};
/// let config = "[remote \"origin\"]\n\turl = ssh://git@host.example/a.git\n".to_owned();
/// let files = [("HEAD", ""), ("config", &config), ("objects/x", ""), ("refs/x", "")];
/// let files = Imagined(files.map(|(name, text)| (format!("/r/.git/{name}"), text.to_owned())).into());
/// let start = |line: &str| Process {
///     words: vec!["sh".into(), "-c".into(), line.into()],
///     folder: "/r".into(),
///     ..Process::default()
/// };
/// assert_eq!(judge(&start("cd / && git -C r push origin"), &files).unwrap().url, "ssh://git@host.example/a.git");
/// assert!(judge(&start("git commit -m push"), &files).is_none());
/// ```
pub fn judge(process: &Process, files: &dyn Files) -> Option<Push> {
    judge_at(process, files, 0)
}

/// A program that only runs another one.
struct Wrapper {
    name: &'static str,
    /// Letters of its short options that take a value.
    letters: &'static str,
    /// Its long options that take a value as a word of their own.
    long: &'static [&'static str],
    /// Words before the command.
    plain: usize,
}

const fn wrapper(name: &'static str, letters: &'static str, long: &'static [&'static str], plain: usize) -> Wrapper {
    Wrapper { name, letters, long, plain }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper("builtin", "", &[], 0),
    wrapper("busybox", "", &[], 0),
    wrapper("chronic", "", &[], 0),
    wrapper("command", "", &[], 0),
    wrapper("doas", "uC", &[], 0),
    wrapper("exec", "a", &[], 0),
    wrapper("ionice", "cnp", &["--class", "--classdata"], 0),
    wrapper("nice", "n", &["--adjustment"], 0),
    wrapper("nohup", "", &[], 0),
    wrapper("setsid", "", &[], 0),
    wrapper("stdbuf", "ioe", &["--input", "--output", "--error"], 0),
    wrapper("sudo", "ugpCDRThr", &["--user", "--group", "--chdir", "--prompt"], 0),
    wrapper("time", "fo", &["--format", "--output"], 0),
    wrapper("timeout", "ks", &["--kill-after", "--signal"], 1),
    wrapper("unbuffer", "", &[], 0),
    wrapper("xargs", "adEIiLlnPs", &["--arg-file", "--delimiter", "--max-args", "--max-lines", "--max-procs"], 0),
];

const SHELLS: [&str; 7] = ["ash", "bash", "dash", "ksh", "rbash", "sh", "zsh"];

pub(crate) fn judge_at(process: &Process, files: &dyn Files, depth: usize) -> Option<Push> {
    let [program, rest @ ..] = &process.words[..] else { return None };
    if depth > DEPTH_MAX {
        return None;
    }
    let name = program.rsplit('/').next().unwrap_or(program);
    let with = |words: Vec<String>| Process { words, ..process.clone() };
    if name == "git" {
        return git::push::judge(&with(rest.to_vec()), files, depth);
    }
    if let Some(command) = name.strip_prefix("git-") {
        let words = std::iter::once(command.to_owned()).chain(rest.iter().cloned());
        return git::push::judge(&with(words.collect()), files, depth);
    }
    if name == "env" {
        return judge_at(&environment(process, rest)?, files, depth + 1);
    }
    if SHELLS.contains(&name) {
        let (script, arguments) = script_of(rest)?;
        return shell::judge(script, arguments, process, files, depth + 1);
    }
    let row = WRAPPERS.iter().find(|row| row.name == name)?;
    judge_at(&with(unwrap(row, rest).to_vec()), files, depth + 1)
}

/// The words behind a wrapper's own.
fn unwrap<'words>(row: &Wrapper, words: &'words [String]) -> &'words [String] {
    let mut rest = words;
    while let [word, others @ ..] = rest {
        if word == "--" {
            rest = others;
            break;
        }
        if !word.starts_with('-') || word.len() < 2 {
            break;
        }
        let is_long = word.starts_with("--");
        let takes_next = if is_long {
            row.long.contains(&word.as_str())
        } else {
            let last = word.len() - 1;
            let first_with_value = word.char_indices().skip(1).find(|(_, letter)| row.letters.contains(*letter));
            first_with_value.is_some_and(|(at, _)| at == last)
        };
        rest = if takes_next { others.get(1..).unwrap_or(&[]) } else { others };
    }
    // sudo takes assignments before the command, as a shell does.
    while row.name == "sudo" && rest.first().is_some_and(|word| word.contains('=')) {
        rest = &rest[1..];
    }
    rest.get(row.plain..).unwrap_or(&[])
}

/// `env`: assignments, removals, another directory, and `-S` with more words in one.
fn environment(process: &Process, words: &[String]) -> Option<Process> {
    let mut inner = Process { words: Vec::new(), ..process.clone() };
    let mut rest: Vec<String> = words.iter().rev().cloned().collect();
    while let Some(word) = rest.pop() {
        let (name, attached) = match word.split_once('=') {
            Some((name, value)) if word.starts_with("--") => (name, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        match name {
            "--" => {
                inner.words.extend(rest.into_iter().rev());
                break;
            }
            "-" | "-i" | "--ignore-environment" => inner.variables.clear(),
            "-0" | "--null" | "-v" | "--debug" => {}
            "-u" | "--unset" => drop(inner.variables.remove(&attached.or_else(|| rest.pop())?)),
            "-C" | "--chdir" => inner.folder = join(&inner.folder, &attached.or_else(|| rest.pop())?),
            "-S" | "--split-string" => {
                let text = attached.or_else(|| rest.pop())?;
                rest.extend(git::arguments::split(&text)?.into_iter().rev());
            }
            short if short.starts_with("-u") => drop(inner.variables.remove(&short[2..])),
            short if short.starts_with("-C") => inner.folder = join(&inner.folder, &short[2..]),
            other if other.starts_with('-') => {}
            _ => match word.split_once('=') {
                Some((name, value)) => drop(inner.variables.insert(name.to_owned(), value.to_owned())),
                None => {
                    inner.words.push(word);
                    inner.words.extend(rest.into_iter().rev());
                    break;
                }
            },
        }
    }
    Some(inner)
}

/// The script of `sh -c`, and its arguments from `$0` on.
fn script_of(words: &[String]) -> Option<(&str, &[String])> {
    let mut rest = words;
    let mut has_script = false;
    while let [word, others @ ..] = rest {
        match word.as_str() {
            "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file" => rest = others.get(1..)?,
            long if long.starts_with("--") => rest = others,
            short if short.len() > 1 && short.starts_with(['-', '+']) => {
                has_script |= short.starts_with('-') && short.contains('c');
                // `-eo pipefail`: the name of the option is a word of its own.
                rest = if short.ends_with('o') { others.get(1..)? } else { others };
            }
            script => return has_script.then_some((script, others)),
        }
    }
    None
}

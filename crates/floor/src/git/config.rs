//! Git's configuration: the syntax of one file, and the list that all layers make together.

use crate::files::{join, parent, Files};
use crate::git::repository::Repository;
use crate::limits::{CONFIG_LEN_MAX, DEPTH_MAX};

/// One value. `section` and `key` are lower case, `name` (the quoted part of a header) is as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub section: String,
    pub name: String,
    pub key: String,
    pub value: String,
}

impl Item {
    /// An item from `section.key` or `section.name.key`, as `git -c` has it; none if there is no dot.
    pub fn from_dotted(dotted: &str, value: &str) -> Option<Item> {
        let (section, rest) = dotted.split_once('.')?;
        let (name, key) = rest.rsplit_once('.').unwrap_or(("", rest));
        Some(Item {
            section: section.to_lowercase(),
            name: name.to_owned(),
            key: key.to_lowercase(),
            value: value.to_owned(),
        })
    }
}

/// All values in the order in which git reads them; later ones win.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub items: Vec<Item>,
}

impl Config {
    /// The values of one key, first to last.
    pub fn all<'own>(
        &'own self,
        section: &'own str,
        name: &'own str,
        key: &'own str,
    ) -> impl Iterator<Item = &'own str> {
        let fits = move |item: &&Item| item.section == section && item.name == name && item.key == key;
        self.items.iter().filter(fits).map(|item| item.value.as_str())
    }

    /// The value that wins.
    pub fn last<'own>(&'own self, section: &'own str, name: &'own str, key: &'own str) -> Option<&'own str> {
        self.all(section, name, key).last()
    }
}

/// What the parts of a configuration are looked up with.
pub struct Layers<'call> {
    pub files: &'call dyn Files,
    /// A variable of the environment.
    pub variable: &'call dyn Fn(&str) -> Option<String>,
    /// The working directory, for values of the command line.
    pub folder: &'call str,
    pub repository: Option<&'call Repository>,
}

impl Layers<'_> {
    /// Reads every layer: the machine's, the user's, the repository's, the environment's, then `extra` from the command line.
    pub fn read(&self, extra: &[(String, Option<String>)]) -> Config {
        let mut config = Config::default();
        for path in self.paths() {
            self.read_file(&path, &mut config, 0);
        }
        self.read_variables(&mut config);
        for (dotted, value) in extra {
            config.items.extend(Item::from_dotted(dotted, value.as_deref().unwrap_or("true")));
        }
        config
    }

    fn paths(&self) -> Vec<String> {
        let variable = |name: &str| (self.variable)(name).filter(|value| !value.is_empty());
        let home = variable("HOME");
        let mut paths = Vec::new();
        let skips_system = variable("GIT_CONFIG_NOSYSTEM").is_some_and(|value| is_true(&value));
        if !skips_system {
            paths.push(variable("GIT_CONFIG_SYSTEM").unwrap_or_else(|| "/etc/gitconfig".to_owned()));
        }
        match variable("GIT_CONFIG_GLOBAL") {
            Some(path) => paths.push(path),
            None => {
                let xdg = variable("XDG_CONFIG_HOME").or_else(|| home.as_ref().map(|home| format!("{home}/.config")));
                paths.extend(xdg.map(|xdg| format!("{xdg}/git/config")));
                paths.extend(home.map(|home| format!("{home}/.gitconfig")));
            }
        }
        if let Some(repository) = self.repository {
            paths.push(format!("{}/config", repository.common));
            paths.push(format!("{}/config.worktree", repository.folder));
        }
        paths
    }

    fn read_file(&self, path: &str, config: &mut Config, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        let Some(text) = self.files.read(path).filter(|text| text.len() <= CONFIG_LEN_MAX) else { return };
        for item in parse(&text) {
            let is_include = item.key == "path"
                && (item.section == "include" && item.name.is_empty()
                    || item.section == "includeif" && self.is_met(&item.name, path));
            let target = is_include.then(|| self.expand(&item.value, parent(path)));
            config.items.push(item);
            if let Some(target) = target {
                self.read_file(&target, config, depth + 1);
            }
        }
    }

    /// A path of the configuration: `~/` is the home directory, relative ones go from the file they stand in.
    fn expand(&self, path: &str, base: &str) -> String {
        match path.strip_prefix("~/") {
            Some(rest) => join(&(self.variable)("HOME").unwrap_or_default(), rest),
            None => join(base, path),
        }
    }

    /// Whether the condition of an `includeIf` holds.
    fn is_met(&self, condition: &str, file: &str) -> bool {
        let Some((kind, pattern)) = condition.split_once(':') else { return false };
        let Some(repository) = self.repository else { return false };
        match kind {
            "gitdir" | "gitdir/i" => {
                let mut pattern = match pattern.strip_prefix("./") {
                    Some(rest) => format!("{}/{rest}", parent(file)),
                    None => self.expand_pattern(pattern),
                };
                if pattern.ends_with('/') {
                    pattern.push_str("**");
                }
                let fold = |text: &str| if kind == "gitdir/i" { text.to_lowercase() } else { text.to_owned() };
                let folders = [repository.folder.clone(), self.files.resolve(&repository.folder)];
                folders.iter().any(|folder| is_path_matched(&fold(&pattern), &fold(folder)))
            }
            "onbranch" => {
                let whole = if pattern.ends_with('/') { format!("{pattern}**") } else { pattern.to_owned() };
                repository.branch.as_ref().is_some_and(|branch| is_path_matched(&whole, branch))
            }
            _ => false,
        }
    }

    fn expand_pattern(&self, pattern: &str) -> String {
        match pattern.strip_prefix("~/") {
            Some(rest) => format!("{}/{rest}", (self.variable)("HOME").unwrap_or_default()),
            None if pattern.starts_with('/') => pattern.to_owned(),
            None => format!("**/{pattern}"),
        }
    }

    fn read_variables(&self, config: &mut Config) {
        let count = (self.variable)("GIT_CONFIG_COUNT").and_then(|count| count.parse::<usize>().ok()).unwrap_or(0);
        for number in 0..count.min(crate::limits::COMMANDS_MAX) {
            let of = |kind: &str| (self.variable)(&format!("GIT_CONFIG_{kind}_{number}"));
            if let (Some(key), Some(value)) = (of("KEY"), of("VALUE")) {
                config.items.extend(Item::from_dotted(&key, &value));
            }
        }
        let parameters = (self.variable)("GIT_CONFIG_PARAMETERS").unwrap_or_default();
        for word in quoted_words(&parameters) {
            let (key, value) = word.split_once('=').unwrap_or((&word, "true"));
            config.items.extend(Item::from_dotted(key, value));
        }
    }
}

pub fn is_true(value: &str) -> bool {
    matches!(value.to_lowercase().as_str(), "true" | "yes" | "on" | "1")
}

/// The words of GIT_CONFIG_PARAMETERS: quoted for a shell, either `'key=value'` or `'key'='value'`.
fn quoted_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_with(String::new);
                word.extend(letters.by_ref().take_while(|&inside| inside != '\''));
            }
            '\\' => word.get_or_insert_with(String::new).extend(letters.next()),
            other => word.get_or_insert_with(String::new).push(other),
        }
    }
    words.extend(word);
    words
}

/// Git's `wildmatch` for paths: `*` and `?` stop at slashes, `**` does not.
fn is_path_matched(pattern: &str, path: &str) -> bool {
    matches_from(pattern.as_bytes(), path.as_bytes())
}

fn matches_from(pattern: &[u8], path: &[u8]) -> bool {
    match pattern {
        [] => path.is_empty(),
        [b'*', b'*', b'/', rest @ ..] => {
            let slashes = path.iter().enumerate().filter(|(_, &byte)| byte == b'/').map(|(at, _)| at + 1);
            std::iter::once(0).chain(slashes).any(|at| matches_from(rest, &path[at..]))
        }
        [b'*', b'*'] => true,
        [b'*', rest @ ..] => {
            let end = path.iter().position(|&byte| byte == b'/').unwrap_or(path.len());
            (0..=end).any(|at| matches_from(rest, &path[at..]))
        }
        [b'?', rest @ ..] => path.first().is_some_and(|&byte| byte != b'/') && matches_from(rest, &path[1..]),
        [letter, rest @ ..] => path.first() == Some(letter) && matches_from(rest, &path[1..]),
    }
}

/// The items of one file. Git stops with an error at a line that it cannot read; here the items before it are returned.
///
/// ```
/// use hermetic_floor::git::config::parse;
/// let items = parse("[remote \"origin\"]\n\turl = https://h.example/a # here\n");
/// assert_eq!((items[0].name.as_str(), items[0].value.as_str()), ("origin", "https://h.example/a"));
/// ```
pub fn parse(text: &str) -> Vec<Item> {
    let mut parser = Parser { letters: text.trim_start_matches('\u{feff}').chars().peekable(), items: Vec::new() };
    let (mut section, mut name) = (String::new(), String::new());
    while let Some(letter) = parser.next_significant() {
        if letter == '[' {
            match parser.header() {
                Some(header) => (section, name) = header,
                None => break,
            }
        } else if !parser.item(letter, &section, &name) {
            break;
        }
    }
    parser.items
}

struct Parser<'text> {
    letters: std::iter::Peekable<std::str::Chars<'text>>,
    items: Vec<Item>,
}

impl Parser<'_> {
    /// The next letter that is no space and in no comment.
    fn next_significant(&mut self) -> Option<char> {
        loop {
            match self.letters.next()? {
                '#' | ';' => {
                    self.letters.by_ref().take_while(|&letter| letter != '\n').for_each(drop);
                }
                letter if letter.is_whitespace() => {}
                letter => return Some(letter),
            }
        }
    }

    /// After `[`: the section, and the name behind it.
    fn header(&mut self) -> Option<(String, String)> {
        let mut section = String::new();
        loop {
            match self.letters.next()? {
                ']' => {
                    let (section, name) = section.split_once('.').unwrap_or((&section, ""));
                    return Some((section.to_lowercase(), name.to_lowercase()));
                }
                ' ' | '\t' => break,
                letter if letter.is_alphanumeric() || "-.".contains(letter) => section.push(letter),
                _ => return None,
            }
        }
        while matches!(self.letters.peek(), Some(' ' | '\t')) {
            self.letters.next();
        }
        if self.letters.next()? != '"' {
            return None;
        }
        let mut name = String::new();
        loop {
            match self.letters.next()? {
                '"' => break,
                '\\' => name.push(self.letters.next()?),
                '\n' => return None,
                letter => name.push(letter),
            }
        }
        (self.letters.next()? == ']').then(|| (section.to_lowercase(), name))
    }

    /// A key, which begins with `first`, and its value. False where git would stop.
    fn item(&mut self, first: char, section: &str, name: &str) -> bool {
        if section.is_empty() || !first.is_ascii_alphabetic() {
            return false;
        }
        let mut key = String::from(first);
        while let Some(&letter) = self.letters.peek().filter(|letter| letter.is_ascii_alphanumeric() || **letter == '-')
        {
            key.push(letter);
            self.letters.next();
        }
        while matches!(self.letters.peek(), Some(' ' | '\t' | '\r')) {
            self.letters.next();
        }
        let value = match self.letters.next() {
            None | Some('\n') => Some("true".to_owned()),
            Some('#' | ';') => {
                self.letters.by_ref().take_while(|&letter| letter != '\n').for_each(drop);
                Some("true".to_owned())
            }
            Some('=') => self.value(),
            Some(_) => None,
        };
        let Some(value) = value else { return false };
        let (section, name, key) = (section.to_owned(), name.to_owned(), key.to_lowercase());
        self.items.push(Item { section, name, key, value });
        true
    }

    fn value(&mut self) -> Option<String> {
        let mut value = String::new();
        // Spaces count only when something comes behind them.
        let mut spaces = String::new();
        let mut is_quoted = false;
        loop {
            let letter = match self.letters.next() {
                None | Some('\n') if is_quoted => return None,
                None | Some('\n') => return Some(value),
                Some(letter) => letter,
            };
            match letter {
                '#' | ';' if !is_quoted => {
                    self.letters.by_ref().take_while(|&letter| letter != '\n').for_each(drop);
                    return Some(value);
                }
                ' ' | '\t' | '\r' if !is_quoted => {
                    if !value.is_empty() {
                        spaces.push(letter);
                    }
                    continue;
                }
                _ => value.push_str(&std::mem::take(&mut spaces)),
            }
            match letter {
                '"' => is_quoted = !is_quoted,
                '\\' => match self.letters.next()? {
                    '\n' => {}
                    'n' => value.push('\n'),
                    't' => value.push('\t'),
                    'b' => {
                        value.pop();
                    }
                    escaped @ ('\\' | '"') => value.push(escaped),
                    _ => return None,
                },
                letter => value.push(letter),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_read_as_git_reads_them() {
        let text = "[a]\nx = one  two  \ny=\"q # q\" ; c\nz\nw = a\\\n b\n[A.B \"C\"]\n[s.Sub]\nk = \\\"\\t\n";
        let found: Vec<String> =
            parse(text).iter().map(|item| format!("{}.{}={:?}", item.section, item.key, item.value)).collect();
        assert_eq!(found, ["a.x=\"one  two\"", "a.y=\"q # q\"", "a.z=\"true\"", "a.w=\"a b\"", "s.k=\"\\\"\\t\""]);
    }

    #[test]
    fn paths_are_matched_as_git_matches_them() {
        for (pattern, path, want) in [
            ("/home/*/x/.git", "/home/dev/x/.git", true),
            ("/home/*/.git", "/home/dev/x/.git", false),
            ("**/x/**", "/home/dev/x/.git", true),
            ("**/y/**", "/home/dev/x/.git", false),
            ("feature/**", "feature/a/b", true),
        ] {
            assert_eq!(is_path_matched(pattern, path), want, "{pattern} {path}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "[\\[\\]\"\\\\#;= a-c\n.]{0,80}") {
            parse(&text);
        }

        #[test]
        fn quoted_values_come_back(value in "[ -~]{0,30}") {
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
            let items = parse(&format!("[s \"n\"]\n\tk = \"{escaped}\"\n"));
            prop_assert_eq!(&items[0].value, &value);
        }
    }
}

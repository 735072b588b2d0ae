//! Git's command line: options before the command, and those of the commands that push.

/// What stands before the command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Globals {
    /// `-C`, one after the other.
    pub folders: Vec<String>,
    pub git_dir: Option<String>,
    /// `--bare`: the working directory is the repository.
    pub is_bare: bool,
    /// `-c key=value`; without a value the key is true.
    pub config: Vec<(String, Option<String>)>,
    /// `--config-env=key=VARIABLE`.
    pub config_variables: Vec<(String, String)>,
}

/// Takes the options before the command; none if git would only print something or stop. The rest begins with the command.
pub fn globals(words: &[String]) -> Option<(Globals, &[String])> {
    let mut read = Globals::default();
    let mut rest = words;
    while let [word, others @ ..] = rest {
        if !word.starts_with('-') {
            return Some((read, rest));
        }
        rest = others;
        let (name, attached) = match word.split_once('=') {
            Some((name, value)) if word.starts_with("--") => (name, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        let mut value = || match (attached.clone(), rest) {
            (Some(value), _) => Some(value),
            (None, [next, others @ ..]) => {
                rest = others;
                Some(next.clone())
            }
            (None, []) => None,
        };
        match name {
            "-C" => read.folders.push(value()?),
            "-c" => {
                let pair = value()?;
                let (key, own) = pair.split_once('=').map_or((pair.as_str(), None), |(key, own)| (key, Some(own)));
                read.config.push((key.to_owned(), own.map(str::to_owned)));
            }
            "--config-env" => {
                let pair = value()?;
                let (key, variable) = pair.rsplit_once('=')?;
                read.config_variables.push((key.to_owned(), variable.to_owned()));
            }
            "--git-dir" => read.git_dir = Some(value()?),
            "--work-tree" | "--namespace" | "--super-prefix" | "--attr-source" => drop(value()?),
            "--bare" => read.is_bare = true,
            // With a value these change something, without one they only print it.
            "--exec-path" => drop(attached?),
            "-v" | "--version" | "-h" | "--help" | "--html-path" | "--man-path" | "--info-path" | "--list-cmds" => {
                return None
            }
            _ => {}
        }
    }
    None
}

/// How an option of a command takes a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    /// `--name value` or `--name=value`.
    Value,
    /// `--name=value` or nothing.
    Attached,
}

struct LongOption(&'static str, Takes);

const PUSH_OPTIONS: &[LongOption] = &[
    LongOption("all", Takes::Nothing),
    LongOption("atomic", Takes::Nothing),
    LongOption("branches", Takes::Nothing),
    LongOption("delete", Takes::Nothing),
    LongOption("dry-run", Takes::Nothing),
    LongOption("exec", Takes::Value),
    LongOption("follow-tags", Takes::Nothing),
    LongOption("force", Takes::Nothing),
    LongOption("force-if-includes", Takes::Nothing),
    LongOption("force-with-lease", Takes::Attached),
    LongOption("ipv4", Takes::Nothing),
    LongOption("ipv6", Takes::Nothing),
    LongOption("mirror", Takes::Nothing),
    LongOption("porcelain", Takes::Nothing),
    LongOption("progress", Takes::Nothing),
    LongOption("prune", Takes::Nothing),
    LongOption("push-option", Takes::Value),
    LongOption("quiet", Takes::Nothing),
    LongOption("receive-pack", Takes::Value),
    LongOption("recurse-submodules", Takes::Value),
    LongOption("repo", Takes::Value),
    LongOption("set-upstream", Takes::Nothing),
    LongOption("signed", Takes::Attached),
    LongOption("tags", Takes::Nothing),
    LongOption("thin", Takes::Nothing),
    LongOption("verbose", Takes::Nothing),
    LongOption("verify", Takes::Nothing),
];

const SEND_PACK_OPTIONS: &[LongOption] = &[
    LongOption("all", Takes::Nothing),
    LongOption("atomic", Takes::Nothing),
    LongOption("dry-run", Takes::Nothing),
    LongOption("exec", Takes::Value),
    LongOption("force", Takes::Nothing),
    LongOption("force-if-includes", Takes::Nothing),
    LongOption("force-with-lease", Takes::Attached),
    LongOption("helper-status", Takes::Nothing),
    LongOption("mirror", Takes::Nothing),
    LongOption("progress", Takes::Nothing),
    LongOption("push-option", Takes::Value),
    LongOption("quiet", Takes::Nothing),
    LongOption("receive-pack", Takes::Value),
    LongOption("remote", Takes::Value),
    LongOption("signed", Takes::Attached),
    LongOption("stateless-rpc", Takes::Nothing),
    LongOption("stdin", Takes::Nothing),
    LongOption("thin", Takes::Nothing),
    LongOption("verbose", Takes::Nothing),
];

/// What a push was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushWords {
    /// What is no option: a remote and refspecs.
    pub plain: Vec<String>,
    /// `--repo`.
    pub repository: Option<String>,
}

/// Reads the words after `push`; none if git would only print its help, or stop at an option that it does not know.
pub fn push(words: &[String]) -> Option<PushWords> {
    read(words, PUSH_OPTIONS, "o", "46fnquvd")
}

/// Reads the words after `send-pack`, as [`push`].
pub fn send_pack(words: &[String]) -> Option<PushWords> {
    read(words, SEND_PACK_OPTIONS, "o", "fnqv")
}

/// `with_value` and `without` are the letters of short options.
fn read(words: &[String], options: &'static [LongOption], with_value: &str, without: &str) -> Option<PushWords> {
    let mut told = PushWords::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            told.plain.extend(rest.cloned());
            break;
        }
        if let Some(long) = word.strip_prefix("--") {
            let (name, attached) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let (full, takes) = find(name, options)?;
            let value = match (takes, attached) {
                (Takes::Value, None) => Some(rest.next()?.clone()),
                (Takes::Nothing, Some(_)) => return None,
                (_, attached) => attached.map(str::to_owned),
            };
            if full == "repo" {
                told.repository = value;
            }
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            for (at, letter) in letters.char_indices() {
                if with_value.contains(letter) {
                    if at + letter.len_utf8() == letters.len() {
                        rest.next()?;
                    }
                    break;
                }
                if !without.contains(letter) {
                    return None;
                }
            }
        } else {
            told.plain.push(word.clone());
        }
    }
    Some(told)
}

/// The option that a long name means: itself, its `no-` twin, or the only one that begins like this.
fn find(name: &str, options: &'static [LongOption]) -> Option<(&'static str, Takes)> {
    if let Some(LongOption(full, takes)) = options.iter().find(|option| option.0 == name) {
        return Some((full, *takes));
    }
    if let Some(rest) = name.strip_prefix("no-") {
        let known = options.iter().find(|option| option.0 == rest || option.0.starts_with(rest))?;
        return Some((if known.0 == "repo" { "no-repo" } else { known.0 }, Takes::Nothing));
    }
    let mut fitting = options.iter().filter(|option| option.0.starts_with(name));
    match (fitting.next(), fitting.next()) {
        (Some(only), None) if !name.is_empty() => Some((only.0, only.1)),
        _ => None,
    }
}

/// The words of an alias, as git splits them: quotes and backslashes as in a shell, nothing else.
pub fn split(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_with(String::new);
            }
            (open, '\\') if open != Some('\'') => word.get_or_insert_with(String::new).push(letters.next()?),
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_with(String::new).push(letter),
        }
    }
    if quote.is_some() {
        return None;
    }
    words.extend(word);
    Some(words)
}

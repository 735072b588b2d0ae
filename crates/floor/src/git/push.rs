//! What a git command line would push, and where to.

use crate::files::{join, Files};
use crate::git::arguments::{self, Globals};
use crate::git::builtin::is_builtin;
use crate::git::config::{Config, Layers};
use crate::git::remote::{default_remote, is_local, push_urls};
use crate::git::repository::{self, Repository};
use crate::limits::DEPTH_MAX;
use crate::process::{self, Process, Push, UNKNOWN};

/// Judges a git command: `process.words` are the words behind `git`. Returns the push that leaves this machine.
pub fn judge(process: &Process, files: &dyn Files, depth: usize) -> Option<Push> {
    let (globals, words) = arguments::globals(&process.words)?;
    let place = Place::of(process, &globals, files);
    let mut words = words.to_vec();
    for _ in 0..DEPTH_MAX {
        let [command, rest @ ..] = &words[..] else { return None };
        match command.as_str() {
            "push" => return judge_push(process, &place, rest, files),
            "send-pack" => return judge_send_pack(process, &place, rest),
            "http-push" => return judge_http_push(process, &place, rest),
            name if is_builtin(name) => return None,
            name => {
                let alias = place.alias(name)?;
                if let Some(script) = alias.strip_prefix('!') {
                    return judge_script(process, &place, script, rest, files, depth);
                }
                let mut expanded = arguments::split(&alias)?;
                expanded.extend_from_slice(rest);
                words = expanded;
            }
        }
    }
    None
}

/// Where the command works.
struct Place {
    folder: String,
    repository: Option<Repository>,
    config: Config,
}

impl Place {
    fn of(process: &Process, globals: &Globals, files: &dyn Files) -> Place {
        let variable = |name: &str| process.variables.get(name).cloned();
        let folder = globals.folders.iter().fold(process.folder.clone(), |folder, next| join(&folder, next));
        let given = globals.git_dir.clone().or_else(|| variable("GIT_DIR").filter(|path| !path.is_empty()));
        let given = given.or_else(|| globals.is_bare.then(|| ".".to_owned()));
        let ceilings = variable("GIT_CEILING_DIRECTORIES").unwrap_or_default();
        let ceilings: Vec<String> = ceilings.split(':').filter(|path| !path.is_empty()).map(str::to_owned).collect();
        let repository = repository::find(&folder, given.as_deref(), &ceilings, files);
        let mut extra = globals.config.clone();
        extra.extend(globals.config_variables.iter().map(|(key, name)| (key.clone(), variable(name))));
        let layers = Layers { files, variable: &variable, folder: &folder, repository: repository.as_ref() };
        let config = layers.read(&extra);
        Place { folder, repository, config }
    }

    fn alias(&self, name: &str) -> Option<String> {
        let fits = |item: &&crate::git::config::Item| {
            item.section == "alias"
                && (item.name.is_empty() && item.key.eq_ignore_ascii_case(name)
                    || item.name == name && item.key == "command")
        };
        self.config.items.iter().rfind(fits).map(|item| item.value.clone())
    }

    /// The first address of a remote that is not on this machine.
    fn first_remote_url(&self, name: &str, files: &dyn Files) -> Option<String> {
        push_urls(name, &self.config, self.repository.as_ref(), files).into_iter().find(|url| !is_local(url))
    }
}

fn found(process: &Process, place: &Place, remote: &str, url: String) -> Push {
    let mut command = vec!["git".to_owned()];
    command.extend(process.words.iter().cloned());
    Push { command, remote: remote.to_owned(), url, folder: place.folder.clone() }
}

fn judge_push(process: &Process, place: &Place, words: &[String], files: &dyn Files) -> Option<Push> {
    let told = arguments::push(words)?;
    // Outside of a repository git stops before it looks at any remote.
    let repository = place.repository.as_ref()?;
    let named = told.plain.into_iter().next().or(told.repository);
    let remote = named.unwrap_or_else(|| default_remote(&place.config, repository));
    if remote.contains(UNKNOWN) {
        return None;
    }
    let url = place.first_remote_url(&remote, files)?;
    Some(found(process, place, &remote, url))
}

fn judge_send_pack(process: &Process, place: &Place, words: &[String]) -> Option<Push> {
    place.repository.as_ref()?;
    let destination = arguments::send_pack(words)?.plain.into_iter().next()?;
    if destination.contains(UNKNOWN) {
        return None;
    }
    // send-pack takes an address, never the name of a remote.
    (!is_local(&destination)).then(|| found(process, place, &destination, destination.clone()))
}

fn judge_http_push(process: &Process, place: &Place, words: &[String]) -> Option<Push> {
    place.repository.as_ref()?;
    let url = words.iter().find(|word| !word.starts_with('-'))?;
    (!is_local(url)).then(|| found(process, place, url, url.clone()))
}

/// An alias that is a shell command: git runs it at the top of the work tree, with the words behind it as arguments.
fn judge_script(
    process: &Process,
    place: &Place,
    script: &str,
    rest: &[String],
    files: &dyn Files,
    depth: usize,
) -> Option<Push> {
    let top = place.repository.as_ref().and_then(|repository| repository.top.clone());
    let whole = if rest.is_empty() { script.to_owned() } else { format!("{script} \"$@\"") };
    let mut words = vec!["sh".to_owned(), "-c".to_owned(), whole, script.to_owned()];
    words.extend_from_slice(rest);
    let folder = top.unwrap_or_else(|| place.folder.clone());
    let inner = Process { words, folder, variables: process.variables.clone() };
    process::judge_at(&inner, files, depth + 1)
}

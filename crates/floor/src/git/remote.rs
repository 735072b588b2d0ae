//! From the name of a remote to the addresses that a push goes to, and whether they are on this machine.

use crate::files::Files;
use crate::git::config::Config;
use crate::git::repository::Repository;

/// The remote of a push that names none.
pub fn default_remote(config: &Config, repository: &Repository) -> String {
    let branch = repository.branch.as_deref().unwrap_or("");
    let of_branch = |key: &'static str| config.last("branch", branch, key).filter(|_| !branch.is_empty());
    let chosen =
        of_branch("pushremote").or_else(|| config.last("remote", "", "pushdefault")).or_else(|| of_branch("remote"));
    if let Some(name) = chosen {
        return name.to_owned();
    }
    // Newer releases take the only remote there is; where there is an origin, both take that.
    let mut names: Vec<&str> = Vec::new();
    for item in config.items.iter().filter(|item| item.section == "remote" && !item.name.is_empty()) {
        if !names.contains(&item.name.as_str()) {
            names.push(&item.name);
        }
    }
    match names[..] {
        [only] => only.to_owned(),
        _ => "origin".to_owned(),
    }
}

/// The addresses that a push to `name` goes to; the name itself where it is no remote.
pub fn push_urls(name: &str, config: &Config, repository: Option<&Repository>, files: &dyn Files) -> Vec<String> {
    let own = |key: &str| -> Vec<String> {
        let mut list = Vec::new();
        for value in config.all("remote", name, key) {
            // An empty value takes back those before it.
            if value.is_empty() {
                list.clear();
            } else {
                list.push(value.to_owned());
            }
        }
        list
    };
    if let Some(helper) = config.last("remote", name, "vcs") {
        return vec![format!("{helper}::{name}")];
    }
    let (urls, push_urls) = (own("url"), own("pushurl"));
    if !push_urls.is_empty() {
        return push_urls.iter().map(|url| rewrite(url, config, "insteadof").unwrap_or_else(|| url.clone())).collect();
    }
    let urls = if urls.is_empty() { legacy(name, repository, files) } else { urls };
    let urls = if urls.is_empty() { vec![name.to_owned()] } else { urls };
    let rewritten = |url: &String| rewrite(url, config, "pushinsteadof").or_else(|| rewrite(url, config, "insteadof"));
    urls.iter().map(|url| rewritten(url).unwrap_or_else(|| url.clone())).collect()
}

/// Remotes of before there was a configuration: `.git/remotes/<name>` and `.git/branches/<name>`.
fn legacy(name: &str, repository: Option<&Repository>, files: &dyn Files) -> Vec<String> {
    let Some(repository) = repository.filter(|_| !name.contains('/') && !name.starts_with('.')) else {
        return Vec::new();
    };
    if let Some(text) = files.read(&format!("{}/remotes/{name}", repository.common)) {
        return text.lines().filter_map(|line| line.strip_prefix("URL:")).map(|url| url.trim().to_owned()).collect();
    }
    let text = files.read(&format!("{}/branches/{name}", repository.common)).unwrap_or_default();
    text.lines().next().map(|line| line.split('#').next().unwrap_or("").trim().to_owned()).into_iter().collect()
}

/// `url.<base>.insteadOf`: the longest prefix that fits gives way to the base.
fn rewrite(url: &str, config: &Config, key: &str) -> Option<String> {
    let rules = config.items.iter().filter(|item| item.section == "url" && item.key == key && !item.value.is_empty());
    let best = rules.filter(|item| url.starts_with(&item.value)).max_by_key(|item| item.value.len())?;
    Some(format!("{}{}", best.name, &url[best.value.len()..]))
}

/// Whether a push to that address stays on this machine's file system.
///
/// ```
/// use hermetic_floor::git::remote::is_local;
/// assert!(is_local("../b.git") && is_local("file:///srv/b.git") && is_local("/srv/a:b.git"));
/// assert!(!is_local("h:b.git") && !is_local("https://h/b.git") && !is_local("ext::sh -c x"));
/// ```
pub fn is_local(url: &str) -> bool {
    if let Some((helper, _)) = url.split_once("::") {
        if !helper.is_empty() && helper.chars().all(|letter| letter.is_ascii_alphanumeric() || "+.-_".contains(letter))
        {
            return false;
        }
    }
    if let Some((scheme, _)) = url.split_once("://") {
        let is_scheme =
            |text: &str| text.chars().all(|letter| letter.is_ascii_alphanumeric() || "+.-".contains(letter));
        if !scheme.is_empty() && is_scheme(scheme) {
            return scheme == "file";
        }
    }
    match (url.find(':'), url.find('/')) {
        (None, _) => true,
        (Some(colon), Some(slash)) => slash < colon,
        (Some(_), None) => false,
    }
}

//! One run of a test that bears the attribute: enters before the body, leaves after it, and tells what is needed where it failed.

use crate::environment::{self, Environment};
use crate::error::Error;
use crate::finding::Finding;
use crate::interrupt;
use crate::journals::{self, Directory, Subject};
use crate::recorded::Recorded;
use crate::reproduce::Again;
use crate::sandbox::{Builder, Journal, Kind, Session};
use crate::settings::Settings;
use hermetic_model::seed;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Termination};
use std::sync::OnceLock;

/// A test, as the attribute saw it.
#[derive(Debug)]
pub struct Case {
    pub module: &'static str,
    pub name: &'static str,
    pub package: Option<&'static str>,
    /// The package's.
    pub folder: Option<&'static str>,
    /// `#[should_panic]`.
    pub expects_panic: bool,
}

impl Case {
    /// With the crate: `shop::tests::it_works`.
    fn id(&self) -> String {
        format!("{}::{}", self.module, self.name)
    }

    /// As harnesses name it.
    fn name_in_crate(&self) -> String {
        match self.module.split_once("::") {
            Some((_, module)) => format!("{module}::{}", self.name),
            None => self.name.to_owned(),
        }
    }
}

/// Runs the body in a sandbox.
///
/// # Panics
/// Where the sandbox cannot be entered, and where it noticed something fatal that the body survived.
pub fn run<R: Termination>(
    case: &'static Case,
    options: impl FnOnce(Builder) -> Builder,
    body: impl FnOnce() -> R,
) -> ExitCode {
    let mut attempt = match Attempt::begin(case, options(Builder::new()).settings) {
        Ok(attempt) => attempt,
        Err(error) => panic!("hermetic: {}: {error}", case.id()),
    };
    let code = body().report();
    attempt.is_done = code == ExitCode::SUCCESS;
    attempt.end();
    code
}

/// A test that runs.
struct Attempt {
    case: &'static Case,
    id: String,
    session: Option<Session>,
    directory: Option<&'static Directory>,
    /// The base of the seed, where it was not chosen by the test.
    base: Option<u64>,
    /// The body came to a good end.
    is_done: bool,
}

impl Attempt {
    fn begin(case: &'static Case, mut settings: Settings) -> Result<Attempt, Error> {
        let environment = environment::get()?;
        let id = case.id();
        let replayed = replayed(environment, &id)?;
        settings.network_strict |= environment.network_strict;
        let base = if settings.seed.is_none() { Some(environment.base) } else { None };
        let mut seed = settings.seed.unwrap_or_else(|| i128::from(seed::for_test(&id, environment.base)));
        if let Some(recorded) = replayed {
            tell_of_replay(recorded, case);
            recorded.replace(&mut settings)?;
            seed = settings.seed.unwrap_or(seed);
        }
        let directory = environment.record.as_deref().map(Directory::prepare).transpose()?;
        let subject = Subject { test: Some(&id), folder: case.folder };
        let head = directory.map(|_| journals::head(&settings, seed, &subject)).transpose()?;
        let journal = match (directory, &head, replayed) {
            (Some(directory), Some(head), _) => Journal::Record { scratch: &directory.scratch, head },
            (_, _, Some(recorded)) => Journal::Replay { raw: &recorded.raw, pinned: recorded.pinned },
            _ => Journal::None,
        };
        let session = Session::enter(&settings, seed, &journal, Kind::Automatic)?;
        let attempt = Attempt { case, id, session: Some(session), directory, base, is_done: false };
        crate::real::scope(|| interrupt::note_running(&attempt.id, &attempt.again(None)));
        Ok(attempt)
    }

    fn again(&self, replay: Option<&Path>) -> String {
        let test = self.case.name_in_crate();
        let is_nextest = std::env::var_os("NEXTEST").is_some();
        Again { test: &test, package: self.case.package, base: self.base, replay, is_nextest }.command()
    }

    /// Leaves and judges.
    fn end(&mut self) {
        let Some(mut session) = self.session.take() else { return };
        let left = session.leave();
        let is_panicking = std::thread::panicking();
        let (problem, findings) = match left {
            Ok(left) => (None, left.findings),
            Err(error) => (Some(error.to_string()), Vec::new()),
        };
        let fatal: Vec<&Finding> = findings.iter().filter(|found| found.is_fatal).collect();
        let is_good = if self.case.expects_panic { is_panicking } else { self.is_done };
        let is_failed = !is_good || !fatal.is_empty() || problem.is_some();
        let journal = self.settle(&session, is_failed);
        // The next test may enter from here on.
        drop(session);
        if !is_failed {
            return;
        }
        self.tell(&findings, journal);
        if is_panicking {
            return;
        }
        if let Some(problem) = problem {
            panic!("hermetic: {problem}");
        }
        if self.is_done && !fatal.is_empty() {
            let lines: Vec<String> = fatal.iter().map(|found| format!("hermetic: {found}")).collect();
            panic!("{}\nThe test came to its end all the same; this decides against it.", lines.join("\n"));
        }
    }

    /// Keeps the journal of a failed attempt, and forgets that of any other.
    fn settle(&self, session: &Session, is_failed: bool) -> Option<Result<PathBuf, Error>> {
        let directory = self.directory?;
        if !is_failed {
            directory.forget();
            return None;
        }
        session.with_journal(|raw| directory.keep(raw, &self.id))
    }

    fn tell(&self, findings: &[Finding], journal: Option<Result<PathBuf, Error>>) {
        for finding in findings {
            eprintln!("hermetic: {finding}");
        }
        eprintln!("hermetic: run this test again with\n    {}", self.again(None));
        match journal {
            Some(Ok(path)) => eprintln!("hermetic: replay what it was told with\n    {}", self.again(Some(&path))),
            Some(Err(error)) => eprintln!("hermetic: {error}"),
            None => {}
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.end();
    }
}

/// The journal that this run replays, if it is of this test.
fn replayed(environment: &Environment, id: &str) -> Result<Option<&'static Recorded>, Error> {
    static RECORDED: OnceLock<Result<Recorded, String>> = OnceLock::new();
    let Some(path) = &environment.replay else { return Ok(None) };
    let read = RECORDED.get_or_init(|| Recorded::read(path).map_err(|error| error.to_string()));
    let recorded = read.as_ref().map_err(|text| Error::Journal(text.clone()))?;
    // One that does not say which test it is of is for whichever runs.
    Ok(recorded.test().is_none_or(|test| test == id).then_some(recorded))
}

fn tell_of_replay(recorded: &Recorded, case: &Case) {
    eprintln!("hermetic: replays {}", recorded.path.display());
    for warning in recorded.warnings(case.folder) {
        eprintln!("hermetic: {warning}");
    }
}

//! `hermetic pg`: throwaway PostgreSQL from a shell and for languages without a front end of their own.
//!
//! Each answer is one line of JSON on standard output, an error too; people read the same on standard error. What a cluster
//! is and how it ends is the affair of the crate `pg`.

mod answer;
mod options;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use hermetic_pg::{url, Cluster, Error, Run, Seed, Template};
use lexopt::{Arg, Parser};

use crate::command::{find, list, Command};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::terminal::Terminal;

use answer::{object, Value};
use options::Given;

pub(crate) const COMMAND: Command =
    Command { name: "pg", summary: "throwaway PostgreSQL clusters", help: "Usage: hermetic pg COMMAND ...\n", run };

const COMMANDS: &[Command] = &[
    Command {
        name: "run",
        summary: "run a command with a cluster that ends with it",
        help: "Usage: hermetic pg run [OPTIONS] -- COMMAND ...\n\n\
               Exports HERMETIC_PG_URL, and the variable of --dsn-env, to the command.\n",
        run: run_command,
    },
    Command {
        name: "start",
        summary: "start a cluster that lasts until it is stopped, or as long as --owner",
        help: "Usage: hermetic pg start [OPTIONS]\n",
        run: start,
    },
    Command {
        name: "stop",
        summary: "stop clusters by their run's name, or all of this user",
        help: "Usage: hermetic pg stop RUN ... | --all\n",
        run: stop,
    },
    Command {
        name: "list",
        summary: "the running clusters of this user",
        help: "Usage: hermetic pg list\n",
        run: show,
    },
    Command {
        name: "sweep",
        summary: "remove what dead runs of this user left",
        help: "Usage: hermetic pg sweep\n",
        run: sweep,
    },
    Command {
        name: "create",
        summary: "make a database in a running cluster",
        help: "Usage: hermetic pg create RUN [NAME]\n",
        run: create,
    },
    Command {
        name: "drop",
        summary: "end a database of a running cluster",
        help: "Usage: hermetic pg drop RUN NAME\n",
        run: drop_database,
    },
];

/// The variable that tells processes of the command where to show their clocks.
const CLOCKS_VARIABLE: &str = "HERMETIC_CLOCKS";
/// The variable that always holds the URL for a command.
const URL_VARIABLE: &str = "HERMETIC_PG_URL";

fn run(mut parser: Parser, terminal: &mut Terminal<'_>) -> Result<Exit, Failure> {
    match parser.next()? {
        None => {
            write_help(terminal)?;
            Ok(Exit::Usage)
        }
        Some(Arg::Short('h') | Arg::Long("help")) => write_help(terminal),
        Some(Arg::Value(name)) => {
            let command = find(COMMANDS, "pg command", "hermetic pg", &name)?;
            (command.run)(parser, terminal)
        }
        Some(other) => Err(Failure::usage(other.unexpected().to_string(), "see `hermetic pg --help`")),
    }
}

/// The supervisor's part of this program, which is not for people: nothing for other arguments.
pub(crate) fn supervise(arguments: &[OsString]) -> Option<i32> {
    let (word, rest) = arguments.split_first()?;
    if word == "pg" {
        hermetic_pg::main(&["pg"], rest)
    } else {
        None
    }
}

fn write_help(terminal: &mut Terminal<'_>) -> Result<Exit, Failure> {
    write!(terminal.out, "{}\nCommands:\n{}\n{}", COMMAND.help, list(COMMANDS), options::HELP)?;
    Ok(Exit::Ok)
}

/// Tells an error in both ways.
fn failed(terminal: &mut Terminal<'_>, error: &Error) -> Failure {
    let parts = [("kind", Value::Text(error.kind.name())), ("message", Value::Text(&error.what))];
    let line = object(&[("error", Value::Raw(&object(&parts)))]);
    match writeln!(terminal.out, "{line}") {
        Ok(()) => Failure { exit: Exit::Postgres, what: error.to_string(), hint: String::new() },
        Err(error) => error.into(),
    }
}

/// Starts the cluster that options describe, and the database that a seed or `--database` asks for.
fn begin(given: &Given) -> Result<(Cluster, String), Error> {
    let mut fill = |template: &Template<'_>| given.seeds.iter().try_for_each(|file| template.file(file));
    let seed: Option<Seed<'_>> = if given.seeds.is_empty() { None } else { Some(&mut fill) };
    let cluster = Cluster::start(&given.options, seed)?;
    let address = if given.has_database { url(cluster.info(), &cluster.take(None)?) } else { cluster.base_url() };
    Ok((cluster, address))
}

fn run_command(parser: Parser, terminal: &mut Terminal<'_>) -> Result<Exit, Failure> {
    let Some(given) = Given::read(parser, &COMMANDS[0], terminal)? else { return Ok(Exit::Ok) };
    let Some((program, arguments)) = given.words.split_first() else {
        return Err(Failure::usage("`pg run` needs a command", "hermetic pg run [OPTIONS] -- COMMAND ..."));
    };
    let (cluster, address) = begin(&given).map_err(|error| failed(terminal, &error))?;
    // This process becomes the command, so that signals, the terminal and the exit code are the command's own.
    let run = cluster.entrust().map_err(|error| failed(terminal, &error))?;
    let mut command = std::process::Command::new(program);
    command.args(arguments).env(URL_VARIABLE, &address);
    command.envs(given.dsn_env.iter().map(|name| (name, &address)));
    command.envs(run.info().clocks().map(|folder| (CLOCKS_VARIABLE, folder)));
    terminal.out.flush()?;
    let error = command.exec();
    // The lease is this process's, which now ends; but not before what was started has gone.
    run.stop_for_all();
    Err(Failure::usage(format!("cannot run {}: {error}", program.to_string_lossy()), "give a program that exists"))
}

fn start(parser: Parser, terminal: &mut Terminal<'_>) -> Result<Exit, Failure> {
    let Some(mut given) = Given::read(parser, &COMMANDS[1], terminal)? else { return Ok(Exit::Ok) };
    given.refuse_words("start")?;
    given.options.is_lasting = given.options.owner.is_none();
    let (cluster, address) = begin(&given).map_err(|error| failed(terminal, &error))?;
    let cluster = cluster.entrust().map_err(|error| failed(terminal, &error))?;
    writeln!(terminal.out, "{}", describe(&cluster, &address))?;
    Ok(Exit::Ok)
}

fn describe(cluster: &Cluster, address: &str) -> String {
    let info = cluster.info();
    let clocks = info.clocks().map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default();
    let (data_dir, socket_dir) = (info.data_dir.to_string_lossy(), info.socket_dir.to_string_lossy());
    object(&[
        ("run", Value::Text(&info.run)),
        ("url", Value::Text(address)),
        ("base_url", Value::Text(&cluster.base_url())),
        ("socket_dir", Value::Text(&socket_dir)),
        ("port", Value::Number(u64::from(info.port))),
        ("data_dir", Value::Text(&data_dir)),
        ("clocks", Value::Text(&clocks)),
        ("supervisor", Value::Number(u64::from(info.supervisor))),
        ("owner", Value::Number(u64::from(info.owner))),
        ("version", Value::Text(&info.version)),
        ("note", Value::Text(&info.note)),
    ])
}

fn stop(mut parser: Parser, terminal: &mut Terminal<'_>) -> Result<Exit, Failure> {
    let (mut names, mut is_all) = (Vec::new(), false);
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Short('h') | Arg::Long("help") => return write_command_help(&COMMANDS[2], terminal),
            Arg::Long("all") => is_all = true,
            Arg::Value(name) => names.push(name.to_string_lossy().into_owned()),
            other => return Err(Failure::usage(other.unexpected().to_string(), "see `hermetic pg stop --help`")),
        }
    }
    if is_all != names.is_empty() {
        return Err(Failure::usage("`pg stop` takes names of runs, or --all", "`hermetic pg list` names them"));
    }
    let mut runs = hermetic_pg::runs().map_err(|error| failed(terminal, &error))?;
    if !is_all {
        runs = names.iter().map(|name| named(&runs, name)).collect::<Result<_, _>>()?;
    }
    for run in runs {
        if let Ok(cluster) = Cluster::attach(&run.control()) {
            cluster.stop_for_all();
            writeln!(terminal.out, "{}", object(&[("stopped", Value::Text(&run.name))]))?;
        }
    }
    Ok(Exit::Ok)
}

fn named(runs: &[Run], name: &str) -> Result<Run, Failure> {
    let found = runs.iter().find(|run| run.name == name);
    found
        .cloned()
        .ok_or_else(|| Failure::usage(format!("no cluster of this user is called {name}"), "see `hermetic pg list`"))
}

fn show(parser: Parser, terminal: &mut Terminal<'_>) -> Result<Exit, Failure> {
    if words(parser, &COMMANDS[3], 0..=0, terminal)?.is_none() {
        return Ok(Exit::Ok);
    }
    for run in hermetic_pg::runs().map_err(|error| failed(terminal, &error))? {
        // One that ends while we look is not running any more.
        if let Ok(cluster) = Cluster::attach(&run.control()) {
            let address = cluster.base_url();
            writeln!(terminal.out, "{}", describe(&cluster, &address))?;
        }
    }
    Ok(Exit::Ok)
}

fn sweep(parser: Parser, terminal: &mut Terminal<'_>) -> Result<Exit, Failure> {
    if words(parser, &COMMANDS[4], 0..=0, terminal)?.is_none() {
        return Ok(Exit::Ok);
    }
    for name in hermetic_pg::sweep().map_err(|error| failed(terminal, &error))? {
        writeln!(terminal.out, "{}", object(&[("swept", Value::Text(&name))]))?;
    }
    Ok(Exit::Ok)
}

fn create(parser: Parser, terminal: &mut Terminal<'_>) -> Result<Exit, Failure> {
    let Some(words) = words(parser, &COMMANDS[5], 1..=2, terminal)? else { return Ok(Exit::Ok) };
    let cluster = attach(&words[0], terminal)?;
    let name = cluster.take(words.get(1).map(String::as_str)).map_err(|error| failed(terminal, &error))?;
    let address = url(cluster.info(), &name);
    cluster.entrust().map_err(|error| failed(terminal, &error))?;
    let line = object(&[("name", Value::Text(&name)), ("url", Value::Text(&address))]);
    writeln!(terminal.out, "{line}")?;
    Ok(Exit::Ok)
}

fn drop_database(parser: Parser, terminal: &mut Terminal<'_>) -> Result<Exit, Failure> {
    let Some(words) = words(parser, &COMMANDS[6], 2..=2, terminal)? else { return Ok(Exit::Ok) };
    let cluster = attach(&words[0], terminal)?;
    cluster.retire(&words[1]).map_err(|error| failed(terminal, &error))?;
    writeln!(terminal.out, "{}", object(&[("dropped", Value::Text(&words[1]))]))?;
    Ok(Exit::Ok)
}

fn attach(name: &str, terminal: &mut Terminal<'_>) -> Result<Cluster, Failure> {
    let runs = hermetic_pg::runs().map_err(|error| failed(terminal, &error))?;
    let control: PathBuf = named(&runs, name)?.control();
    Cluster::attach(&control).map_err(|error| failed(terminal, &error))
}

/// The words of a command that takes nothing else; nothing if the answer was the help text.
fn words(
    mut parser: Parser,
    command: &Command,
    count: std::ops::RangeInclusive<usize>,
    terminal: &mut Terminal<'_>,
) -> Result<Option<Vec<String>>, Failure> {
    let mut words = Vec::new();
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Short('h') | Arg::Long("help") => return write_command_help(command, terminal).map(|_| None),
            Arg::Value(word) => words.push(word.to_string_lossy().into_owned()),
            other => {
                let hint = format!("see `hermetic pg {} --help`", command.name);
                return Err(Failure::usage(other.unexpected().to_string(), hint));
            }
        }
    }
    if !count.contains(&words.len()) {
        return Err(Failure::usage(
            format!("`pg {}` takes other words than {words:?}", command.name),
            command.help.trim(),
        ));
    }
    Ok(Some(words))
}

fn write_command_help(command: &Command, terminal: &mut Terminal<'_>) -> Result<Exit, Failure> {
    write!(terminal.out, "{}", command.help)?;
    Ok(Exit::Ok)
}

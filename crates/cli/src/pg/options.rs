//! The options of the commands that start a cluster.

use std::ffi::OsString;
use std::path::PathBuf;

use hermetic_pg::{key, Binaries, Clock, Isolation, Options};
use lexopt::{Arg, Parser, ValueExt};

use crate::command::Command;
use crate::failure::Failure;
use crate::terminal::Terminal;

pub(crate) const HELP: &str = "\
Options of run and start:
  --dsn-env NAME        also export the URL under this name (run)
  --database            a fresh database's URL instead of the maintenance database's
  --seed FILE           fill the template with this SQL file, once for its content (repeatable; implies --database)
  --owner PID           end with this process (start)
  --port N              the port, which only names the socket (5432)
  --pg-bin DIR          the directory of the server's programs
  --data-parent DIR     where the data directory is made (/dev/shm)
  --socket-parent DIR   where the socket directory is made (/dev/shm, /tmp)
  --set NAME=VALUE      a setting of the server (repeatable)
  --pool N              databases kept ready (8)
  --clock follow        the sessions' wall clock is that of their client's sandbox; needs the engine's library
  --namespaces          start quicker, with the data where only the server sees it
";

/// What a command line asks for.
pub(crate) struct Given {
    pub options: Options,
    pub dsn_env: Vec<String>,
    pub has_database: bool,
    pub seeds: Vec<PathBuf>,
    /// The command to run.
    pub words: Vec<OsString>,
}

impl Given {
    /// Reads the rest of the command line; nothing if the answer was the help text.
    pub fn read(mut parser: Parser, command: &Command, terminal: &mut Terminal<'_>) -> Result<Option<Given>, Failure> {
        let mut given = Given {
            options: Options::from_environment(),
            dsn_env: Vec::new(),
            has_database: false,
            seeds: Vec::new(),
            words: Vec::new(),
        };
        while let Some(arg) = parser.next()? {
            match arg {
                Arg::Short('h') | Arg::Long("help") => {
                    write!(terminal.out, "{}\n{HELP}", command.help)?;
                    return Ok(None);
                }
                Arg::Value(word) => {
                    given.words.push(word);
                    given.words.extend(parser.raw_args()?);
                }
                Arg::Long(name) => {
                    let name = name.to_owned();
                    given.option(&name, &mut parser)?;
                }
                other => return Err(Failure::usage(other.unexpected().to_string(), "see `hermetic pg --help`")),
            }
        }
        given.set_seed_key()?;
        Ok(Some(given))
    }

    fn option(&mut self, name: &str, parser: &mut Parser) -> Result<(), Failure> {
        let options = &mut self.options;
        match name {
            "dsn-env" => self.dsn_env.push(parser.value()?.string()?),
            "database" => self.has_database = true,
            "seed" => self.seeds.push(parser.value()?.into()),
            "owner" => options.owner = Some(parser.value()?.parse()?),
            "port" => options.port = parser.value()?.parse()?,
            "pg-bin" => {
                let directory = PathBuf::from(parser.value()?);
                let found = Binaries::in_directory(&directory);
                options.binaries = Some(found.map_err(|error| Failure::usage(error.what, "see `hermetic pg --help`"))?);
            }
            "data-parent" => options.data_parent = Some(parser.value()?.into()),
            "socket-parent" => options.socket_parent = Some(parser.value()?.into()),
            "pool" => options.pool = parser.value()?.parse()?,
            "clock" => {
                let text = parser.value()?.string()?;
                options.clock = match text.as_str() {
                    "real" => Clock::Real,
                    "follow" => Clock::Follow,
                    _ => {
                        let what = format!("--clock {text:?} is not accepted");
                        return Err(Failure::usage(what, "real and follow are"));
                    }
                };
            }
            "namespaces" => options.isolation = Isolation::Namespace,
            "set" => {
                let text = parser.value()?.string()?;
                let Some((name, value)) = text.split_once('=') else {
                    return Err(Failure::usage(format!("--set {text:?} is not accepted"), "NAME=VALUE is"));
                };
                options.settings.push((name.to_owned(), value.to_owned()));
            }
            other => return Err(Failure::usage(format!("unknown option --{other}"), "see `hermetic pg --help`")),
        }
        Ok(())
    }

    fn set_seed_key(&mut self) -> Result<(), Failure> {
        if self.seeds.is_empty() {
            return Ok(());
        }
        self.has_database = true;
        let mut contents = Vec::new();
        for path in &self.seeds {
            let text = std::fs::read(path).map_err(|error| {
                Failure::unreadable(format!("cannot read {}: {error}", path.display()), "give an SQL file that exists")
            })?;
            contents.push(String::from_utf8_lossy(&text).into_owned());
        }
        self.options.seed_key = key(&contents.iter().map(String::as_str).collect::<Vec<_>>());
        Ok(())
    }

    /// For commands that run nothing.
    pub fn refuse_words(&self, command: &str) -> Result<(), Failure> {
        match self.words.first() {
            None => Ok(()),
            Some(word) => {
                let what = format!("`pg {command}` takes no word such as {}", word.to_string_lossy());
                Err(Failure::usage(what, format!("see `hermetic pg {command} --help`")))
            }
        }
    }
}

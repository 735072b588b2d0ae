//! A client of PostgreSQL, as much as a launcher needs: a unix socket, trust, and the simple query protocol in text.
//!
//! It has no time-outs: waiting for a server that is starting is the supervisor's business.

use std::fmt;
use std::io::{BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Version 3.0 of the protocol.
const PROTOCOL: u32 = 3 << 16;
/// The server's own limit of a message.
const MESSAGE_BYTES_MAX: usize = 1 << 30;

/// SQLSTATEs that decisions depend on.
pub mod code {
    pub const STARTING_UP: &str = "57P03";
    pub const TOO_MANY_CONNECTIONS: &str = "53300";
    pub const DISK_FULL: &str = "53100";
    pub const DUPLICATE_DATABASE: &str = "42P04";
    pub const NO_SUCH_DATABASE: &str = "3D000";
}

/// What the server says about a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerError {
    pub severity: String,
    pub code: String,
    pub message: String,
    pub detail: String,
    pub hint: String,
}

impl fmt::Display for ServerError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:  {} (SQLSTATE {})", self.severity, self.message, self.code)?;
        for (title, text) in [("DETAIL", &self.detail), ("HINT", &self.hint)] {
            if !text.is_empty() {
                write!(out, "\n{title}:  {text}")?;
            }
        }
        Ok(())
    }
}

/// Why a statement has no result.
#[derive(Debug)]
pub enum Failure {
    /// The connection is broken, or there is none.
    Broken(std::io::Error),
    /// The server refuses; the connection is still good, unless it was being made.
    Server(ServerError),
}

impl Failure {
    /// The SQLSTATE, where the server gave one.
    pub fn code(&self) -> &str {
        match self {
            Failure::Server(error) => &error.code,
            Failure::Broken(_) => "",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Broken(error) => write!(out, "the connection is broken: {error}"),
            Failure::Server(error) => error.fmt(out),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::Broken(error)
    }
}

fn broken(what: &str) -> Failure {
    Failure::Broken(std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_owned()))
}

/// A row: a text for each column, `None` for NULL.
pub type Row = Vec<Option<String>>;

/// An open connection.
pub struct Connection {
    stream: BufReader<UnixStream>,
}

impl Connection {
    /// Connects and waits until the server takes statements.
    ///
    /// # Errors
    /// No server listens there, or it refuses the user or the database, or has no connection left.
    pub fn open(socket: &Path, user: &str, database: &str) -> Result<Connection, Failure> {
        let mut connection = Connection { stream: BufReader::new(crate::socket::open(socket)?) };
        let mut body = PROTOCOL.to_be_bytes().to_vec();
        for text in ["user", user, "database", database, "application_name", "hermetic", "client_encoding", "UTF8", ""]
        {
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
        let len = (body.len() + 4) as u32;
        connection.stream.get_mut().write_all(&[&len.to_be_bytes()[..], &body].concat())?;
        connection.read_until_ready()?;
        Ok(connection)
    }

    /// Runs statements and returns all rows of all of them, in order.
    ///
    /// # Errors
    /// The first statement that fails ends the text; what stood before it in the same text is undone, unless it was
    /// committed by itself.
    pub fn query(&mut self, statements: &str) -> Result<Vec<Row>, Failure> {
        if statements.contains('\0') {
            return Err(broken("a statement cannot hold a NUL character"));
        }
        self.send(b'Q', &[statements.as_bytes(), b"\0"].concat())?;
        self.read_until_ready()
    }

    /// The first column of the first row, or an empty text.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub fn value(&mut self, statement: &str) -> Result<String, Failure> {
        let rows = self.query(statement)?;
        Ok(rows.into_iter().next().and_then(|row| row.into_iter().next().flatten()).unwrap_or_default())
    }

    fn send(&mut self, kind: u8, body: &[u8]) -> Result<(), Failure> {
        let len = (body.len() + 4) as u32;
        Ok(self.stream.get_mut().write_all(&[&[kind], &len.to_be_bytes()[..], body].concat())?)
    }

    fn receive(&mut self) -> Result<(u8, Vec<u8>), Failure> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head)?;
        let len = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if !(4..=MESSAGE_BYTES_MAX).contains(&len) {
            return Err(broken("the server sent a message of an impossible length"));
        }
        let mut body = vec![0; len - 4];
        self.stream.read_exact(&mut body)?;
        Ok((head[0], body))
    }

    /// Reads up to the server's "ready": rows, or the first error. While connecting, an error is the last message.
    fn read_until_ready(&mut self) -> Result<Vec<Row>, Failure> {
        let mut rows = Vec::new();
        let mut failed = None;
        loop {
            let (kind, body) = match self.receive() {
                Ok(message) => message,
                Err(failure) => return Err(failed.map_or(failure, Failure::Server)),
            };
            match kind {
                b'Z' => return failed.map_or(Ok(rows), |error| Err(Failure::Server(error))),
                b'E' => failed = failed.or_else(|| Some(error_of(&body))),
                b'D' => rows.push(row_of(&body).ok_or_else(|| broken("the server sent a row that cannot be read"))?),
                b'd' => rows.push(vec![Some(String::from_utf8_lossy(&body).trim_end_matches('\n').to_owned())]),
                b'G' | b'W' => self.send(b'f', b"COPY FROM STDIN has no input here\0")?,
                b'R' if body != [0, 0, 0, 0] => return Err(broken("the server asks for a password")),
                // Notices, parameters, keys, and what announces or ends rows.
                _ => {}
            }
        }
    }
}

/// The fields of an error message: a letter, then text, each ended by a NUL.
fn error_of(body: &[u8]) -> ServerError {
    let mut error = ServerError::default();
    for field in body.split(|byte| *byte == 0).filter(|field| !field.is_empty()) {
        let text = String::from_utf8_lossy(&field[1..]).into_owned();
        match field[0] {
            b'S' => error.severity = text,
            b'C' => error.code = text,
            b'M' => error.message = text,
            b'D' => error.detail = text,
            b'H' => error.hint = text,
            _ => {}
        }
    }
    error
}

/// The columns of a row: their number, then for each a length (-1 for NULL) and text.
fn row_of(body: &[u8]) -> Option<Row> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    let mut row = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (len, after) = rest.split_first_chunk::<4>()?;
        rest = after;
        let Ok(len) = usize::try_from(i32::from_be_bytes(*len)) else {
            row.push(None);
            continue;
        };
        let (text, after) = rest.split_at_checked(len)?;
        row.push(Some(String::from_utf8_lossy(text).into_owned()));
        rest = after;
    }
    Some(row)
}

/// Rows as `psql` prints them unaligned and without headers: `|` between columns, nothing for NULL, no space at the ends.
///
/// ```
/// use hermetic_pg::wire::unaligned;
/// assert_eq!(unaligned(&[vec![Some("1".into()), None], vec![Some("2".into())]]), "1|\n2");
/// ```
pub fn unaligned(rows: &[Row]) -> String {
    let line = |row: &Row| row.iter().map(|text| text.as_deref().unwrap_or("")).collect::<Vec<_>>().join("|");
    rows.iter().map(line).collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// A text as a literal in a statement.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A name as an identifier in a statement.
pub fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_row_can_be_read(body in prop::collection::vec(any::<u8>(), 0..64)) {
            row_of(&body);
            error_of(&body);
        }
    }

    #[test]
    fn columns_and_nulls() {
        let body = [0, 2, 255, 255, 255, 255, 0, 0, 0, 2, b'o', b'k'];
        assert_eq!(row_of(&body), Some(vec![None, Some("ok".to_owned())]));
        assert_eq!(row_of(&body[..11]), None);
    }

    #[test]
    fn errors_are_said_as_psql_says_them() {
        let error = error_of(b"SERROR\0VERROR\0C42703\0Mcolumn \"x\" does not exist\0P8\0\0");
        assert_eq!(error.to_string(), "ERROR:  column \"x\" does not exist (SQLSTATE 42703)");
    }

    #[test]
    fn quoting() {
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(identifier("a\"b"), "\"a\"\"b\"");
    }
}

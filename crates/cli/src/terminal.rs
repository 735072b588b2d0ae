//! Where a command writes, as its caller describes it.

use std::io::Write;

/// Two writers and what is known of the reader. Callers wrap `out` in a buffer; [`crate::run`] flushes it.
pub struct Terminal<'a> {
    pub out: &'a mut dyn Write,
    pub err: &'a mut dyn Write,
    /// Columns, where `out` is a terminal and its size is known. Lines are shortened to it, so pipes get none.
    pub width: Option<usize>,
    /// Escape sequences for colour: `out` is a terminal, and `NO_COLOR` is not set.
    pub color: bool,
}

impl Terminal<'_> {
    pub(crate) fn paint(&self, code: &str, text: &str) -> String {
        if self.color {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_string()
        }
    }
}

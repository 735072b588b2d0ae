//! A journal for people: a block about the test and the machine, then one line an event.
//!
//! Long runs of readings of one clock at one place (poll loops) are shown by their first and last reading unless
//! [`Layout::full`] asks for all. Descriptions of call sites are not events to a reader and are left out.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::describe;
use crate::event::{Clock, Event, Reason};
use crate::head::plain;
use crate::journal::Place;
use crate::{text, Head, Journal};

/// How to lay the page out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layout {
    /// Columns of the terminal; call sites are shortened to fit. None: nothing is shortened.
    pub width: Option<usize>,
    /// Escape sequences for colour.
    pub color: bool,
    /// Every reading of a poll loop.
    pub full: bool,
}

/// Settings of a sandbox and the values that are not worth a mention, as [`plain`] writes them. `seed` has a line of its
/// own, `now` is told where it was pinned, and the others of `None` are no properties of what was recorded.
const DEFAULTS: &[(&str, Option<&str>)] = &[
    ("allow_loopback", Some("yes")),
    ("allow_unix", Some("yes")),
    ("chdir", Some("yes")),
    ("clock", Some("virtual")),
    ("deep_datetime", None),
    ("env", None),
    ("fs", Some("off")),
    ("inherit", Some("on")),
    ("monotonic", Some("fixed")),
    ("network", Some("block")),
    ("network_strict", Some("no")),
    ("now", None),
    ("order", Some("sorted")),
    ("pinned", Some("[]")),
    ("record", None),
    ("replay", None),
    ("rng", Some("all")),
    ("schedule", Some("cooperative")),
    ("scrub_env", Some("no")),
    ("seed", None),
    ("spin_limit", Some("1000000")),
    ("strict_replay", None),
    ("tick", Some("1e-6")),
    ("tz", Some("none")),
];

/// Columns of a value; a longer one pushes the call site to the right.
const VALUE_WIDTH_MAX: usize = 36;

/// The same below [`NARROW_WIDTH`] columns.
const VALUE_WIDTH_NARROW: usize = 29;
const NARROW_WIDTH: usize = 100;

/// A run of at least this many equal readings is folded.
const RUN_MIN: u64 = 6;

/// Columns of the names in the block at the top.
const LABEL_WIDTH: usize = 11;

/// Columns that the name of a call site keeps on a narrow terminal.
const SITE_WIDTH_MIN: usize = 16;

/// Writes the page.
pub fn write(journal: &Journal, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
    write_head(&journal.head(), layout, out)?;
    let columns = Columns::measure(journal, layout);
    writeln!(out)?;
    let title = columns.before_site("seconds", "thread", "event", "value");
    writeln!(out, "{}", layout.dim(&format!("{title}call site")))?;
    let mut page = Page { journal, columns, layout, places: journal.sites(), elapsed: Elapsed::default(), run: None };
    for event in journal.events() {
        page.add(&event, out)?;
    }
    page.end_run(out)?;
    writeln!(out)?;
    page.write_counts(out)
}

impl Layout {
    fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    fn alarm(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.color && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_string()
        }
    }
}

fn write_head(head: &Head, layout: Layout, out: &mut dyn Write) -> io::Result<()> {
    let mut row = |name: &str, value: &str| writeln!(out, "{}{value}", layout.dim(&format!("{name:<LABEL_WIDTH$}")));
    let attempt = if head.attempt > 1 { format!(" (attempt {})", head.attempt) } else { String::new() };
    row("test", &format!("{}{attempt}", head.test.as_deref().map_or_else(|| "none".to_string(), text::line)))?;
    row("recorded", &recorded(head))?;
    row("seed", &or_unknown(head.setting("seed").unwrap_or_default()))?;
    row("settings", &settings(head))?;
    row("machine", &machine(head, layout))?;
    row("zone", &zone(head))?;
    if let Some(revision) = head.fact("git_revision") {
        row("revision", &revision)?;
    }
    if let Some(root) = &head.root {
        row("root", &text::line(root))?;
    }
    Ok(())
}

fn or_unknown(text: String) -> String {
    if text.is_empty() {
        "unknown".to_string()
    } else {
        text
    }
}

fn recorded(head: &Head) -> String {
    let release = or_unknown(text::line(&head.hermetic));
    if head.created_at_ns == 0 {
        return format!("by hermetic {release}");
    }
    let second_ns = head.created_at_ns.saturating_sub(head.created_at_ns.rem_euclid(1_000_000_000));
    format!("{} UTC by hermetic {release}", text::date(second_ns))
}

/// The settings that differ from their default.
fn settings(head: &Head) -> String {
    let mut parts = Vec::new();
    for (name, value) in &head.config {
        let shown = plain(value);
        let is_silent = match DEFAULTS.iter().find(|(known, _)| known == name) {
            Some((_, Some(default))) => shown == *default || value.is_null(),
            Some((_, None)) => true,
            None => false,
        };
        if !is_silent {
            parts.push(format!("{}={shown}", text::line(name)));
        }
    }
    if let Some(now_ns) = pinned_now(head) {
        parts.push(format!("now={}", text::date(now_ns)));
    }
    if parts.is_empty() {
        return "all default".to_string();
    }
    parts.join("  ")
}

/// Where the test pinned the wall clock. Without a pin the recorded clock was the real one.
fn pinned_now(head: &Head) -> Option<i64> {
    let pinned = head.config.get("pinned")?.as_array()?;
    head.config.get("now")?.as_i64().filter(|_| pinned.iter().any(|name| name == "now"))
}

fn machine(head: &Head, layout: Layout) -> String {
    let fact = |name| head.fact(name);
    let python = [fact("implementation"), fact("python")].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let host = fact("hostname").map(|name| format!("host {name}"));
    let cpus = fact("cpu_count").map(|count| format!("{count} CPUs"));
    let packages = head.fingerprint.get("packages").and_then(|packages| packages.as_object());
    let packages = packages.map(|packages| format!("{} packages", packages.len()));
    let platform = [fact("platform"), fact("machine")].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let known = |text: String| Some(text).filter(|text| !text.is_empty());
    let parts = [known(python), known(platform), host, cpus, packages];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    or_unknown(wrapped(&parts, LABEL_WIDTH, layout.width))
}

fn zone(head: &Head) -> String {
    let or_unset = |name| head.fact(name).unwrap_or_else(|| "unset".to_string());
    let names = head.fact("tzname").map(|names| format!(" {names}")).unwrap_or_default();
    let locale = head.fact("locale").map(|locale| format!(", locale {locale}")).unwrap_or_default();
    format!("TZ {}{names}{locale}, PYTHONHASHSEED {}", or_unset("tz_env"), or_unset("hash_seed_env"))
}

/// Widths of the columns of a page.
#[derive(Clone, Copy)]
struct Columns {
    time: usize,
    /// Of the thread and the space after it; 0 where there is only one thread.
    thread: usize,
    value: usize,
    /// Of the longest value that is shown whole.
    value_max: usize,
    /// Of the whole line.
    line: usize,
}

impl Columns {
    /// Of the time, `1234.567890`, unless the test ran for longer.
    const TIME_MIN: usize = 11;
    const LABEL: usize = 10;

    fn measure(journal: &Journal, layout: Layout) -> Columns {
        let is_narrow = layout.width.is_some_and(|width| width < NARROW_WIDTH);
        let value_max = if is_narrow { VALUE_WIDTH_NARROW } else { VALUE_WIDTH_MAX };
        let (mut thread_max, mut value, mut elapsed) = (0, "value".len(), Elapsed::default());
        for event in journal.events() {
            elapsed.note(&event);
            thread_max = thread_max.max(event.thread().unwrap_or(0));
            if event.site().is_some() {
                value = value.max(describe::value(&event).chars().count().min(value_max));
            }
        }
        let time = text_seconds(elapsed.ns).len().max(Columns::TIME_MIN);
        let thread_min = if is_narrow { 2 } else { "thread".len() };
        let thread = if thread_max == 0 { 0 } else { thread_max.to_string().len().max(thread_min) + 2 };
        Columns { time, thread, value, value_max, line: layout.width.unwrap_or(usize::MAX) }
    }

    /// Everything before the call site.
    fn before_site(&self, time: &str, thread: &str, label: &str, value: &str) -> String {
        let (time_width, label_width, value_width) = (self.time, Columns::LABEL, self.value);
        let thread = match self.thread {
            0 => String::new(),
            width => format!("{thread:>0$.0$}  ", width - 2),
        };
        format!("{time:>time_width$}  {thread}{label:<label_width$}  {value:<value_width$}  ")
    }
}

/// A run of readings of one clock, by one thread, at one place.
struct Run {
    clock: Clock,
    thread: u32,
    site: u32,
    count: u64,
    /// Lines held back until it is clear whether the run is long; after that, only the last.
    held: Vec<String>,
}

struct Page<'a> {
    journal: &'a Journal,
    columns: Columns,
    layout: Layout,
    places: BTreeMap<u32, Place<'a>>,
    elapsed: Elapsed,
    run: Option<Run>,
}

impl Page<'_> {
    fn add(&mut self, event: &Event<'_>, out: &mut dyn Write) -> io::Result<()> {
        if matches!(event, Event::Site { .. }) {
            return Ok(());
        }
        self.elapsed.note(event);
        let line = self.event_line(event);
        let Event::Clock { clock, thread, site, .. } = *event else {
            self.end_run(out)?;
            return writeln!(out, "{line}");
        };
        if let Some(run) = self.run.as_mut().filter(|run| (run.clock, run.thread, run.site) == (clock, thread, site)) {
            run.count += 1;
            if !self.layout.full && run.count > RUN_MIN {
                run.held.truncate(1);
            }
            run.held.push(line);
            return if self.layout.full { self.release(out) } else { Ok(()) };
        }
        self.end_run(out)?;
        self.run = Some(Run { clock, thread, site, count: 1, held: vec![line] });
        if self.layout.full {
            self.release(out)
        } else {
            Ok(())
        }
    }

    /// Writes what is held back.
    fn release(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let held = self.run.as_mut().map(|run| std::mem::take(&mut run.held)).unwrap_or_default();
        held.iter().try_for_each(|line| writeln!(out, "{line}"))
    }

    fn end_run(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let Some(run) = &self.run else { return Ok(()) };
        if self.layout.full || run.count <= RUN_MIN {
            self.release(out)?;
        } else {
            let more = format!("… {} more readings …", grouped(run.count - 2));
            let fold = self.columns.before_site("", "", "", &more);
            writeln!(out, "{}", run.held[0])?;
            writeln!(out, "{}", self.layout.dim(fold.trim_end()))?;
            writeln!(out, "{}", run.held[run.held.len() - 1])?;
        }
        self.run = None;
        Ok(())
    }

    fn event_line(&self, event: &Event<'_>) -> String {
        let thread = event.thread().map(|thread| thread.to_string()).unwrap_or_default();
        let (label, mut value) = (describe::label(event), describe::value(event));
        // A refusal is told in full, and so is what has the rest of the line for itself.
        if event.site().is_some() && !matches!(event, Event::Refusal { .. }) {
            value = cut(value, self.columns.value_max);
        }
        let columns = self.columns.before_site(&text_seconds(self.elapsed.ns), &thread, label, &value);
        let room = self.columns.line.saturating_sub(columns.chars().count()).max(SITE_WIDTH_MIN);
        let site = event.site().and_then(|site| self.places.get(&site));
        let site = site.map(|place| site_text(place, room)).unwrap_or_default();
        if matches!(event, Event::Refusal { .. }) {
            return self.layout.alarm(format!("{columns}{site}").trim_end());
        }
        if site.is_empty() {
            return columns.trim_end().to_string();
        }
        format!("{columns}{}", self.layout.dim(&site))
    }

    fn write_counts(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut counts = self.journal.counts();
        counts.retain(|(name, _)| *name != "site");
        let events: u64 = counts.iter().map(|(_, count)| count).sum();
        let title = format!("{} event{}", grouped(events), if events == 1 { "" } else { "s" });
        let parts: Vec<String> = counts.iter().map(|(name, count)| format!("{} {name}", grouped(*count))).collect();
        if parts.is_empty() {
            writeln!(out, "{title}")?;
        } else {
            writeln!(out, "{title}: {}", wrapped(&parts, title.chars().count() + 2, self.layout.width))?;
        }
        if !self.journal.is_finished() {
            writeln!(out, "The recording was not finished: its process ended before, or still runs.")?;
        }
        Ok(())
    }
}

/// Parts with commas between them, broken into lines that fit; all but the first are indented.
fn wrapped(parts: &[String], indent: usize, width: Option<usize>) -> String {
    let mut text = String::new();
    let mut column = indent;
    for (at, part) in parts.iter().enumerate() {
        let len = part.chars().count();
        if at > 0 && width.is_some_and(|width| column + 2 + len + 1 > width) {
            text.push_str(",\n");
            text.push_str(&" ".repeat(indent));
            column = indent;
        } else if at > 0 {
            text.push_str(", ");
            column += 2;
        }
        text.push_str(part);
        column += len;
    }
    text
}

/// A call site in at most `width` columns: the function goes first, then folders, then the
/// start of the file's name.
fn site_text(place: &Place<'_>, width: usize) -> String {
    let file = format!("{}:{}", text::line(place.file), place.line);
    let full = if place.function.is_empty() { file.clone() } else { format!("{file} {}", text::line(place.function)) };
    if full.chars().count() <= width {
        return full;
    }
    let count = file.chars().count();
    if count <= width {
        return file;
    }
    let folders = file.match_indices('/').map(|(at, _)| &file[at..]);
    if let Some(end) = folders.into_iter().find(|end| end.chars().count() < width) {
        return format!("…{end}");
    }
    let kept: String = file.chars().skip(count - (width - 1)).collect();
    format!("…{kept}")
}

/// A value in at most `width` columns.
fn cut(value: String, width: usize) -> String {
    if value.chars().count() <= width {
        return value;
    }
    let kept: String = value.chars().take(width - 1).collect();
    format!("{kept}…")
}

/// `1,234,567`.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Seconds with six digits, which is as fine as people read.
fn text_seconds(ns: i64) -> String {
    let micros = ns.max(0) / 1_000;
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// How long the test has run, pieced together from what its clocks said. Never goes back.
#[derive(Default)]
struct Elapsed {
    ns: i64,
    /// What a clock says when nothing has elapsed, once it was read.
    origins_ns: [Option<i64>; Clock::ALL.len()],
}

impl Elapsed {
    fn note(&mut self, event: &Event<'_>) {
        match *event {
            Event::Clock { clock: clock @ (Clock::Wall | Clock::Monotonic | Clock::Boot), value_ns, .. } => {
                self.follow(clock, value_ns);
            }
            // Setting the wall clock moves its origin and takes no time.
            Event::Jump { to_ns, reason: Reason::Set, .. } => {
                self.origins_ns[Clock::Wall as usize] = Some(to_ns.saturating_sub(self.ns));
            }
            Event::Jump { to_ns, .. } => self.follow(Clock::Wall, to_ns),
            _ => {}
        }
    }

    fn follow(&mut self, clock: Clock, value_ns: i64) {
        let origin = self.origins_ns[clock as usize].get_or_insert(value_ns.saturating_sub(self.ns));
        self.ns = self.ns.max(value_ns.saturating_sub(*origin));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_of_a_sandbox_is_known() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/options.toml");
        let spec = std::fs::read_to_string(path).expect("spec/options.toml");
        let tables = spec.split("\n[[").filter_map(|table| table.strip_prefix("sandbox]]"));
        let names: Vec<&str> = tables
            .filter_map(|table| table.lines().find_map(|line| line.strip_prefix("name = ")))
            .map(|name| name.trim_matches('"'))
            .collect();
        assert!(names.len() > 10, "{names:?}");
        for name in names {
            assert!(DEFAULTS.iter().any(|(known, _)| *known == name), "{name} has no row in DEFAULTS");
        }
    }

    #[test]
    fn elapsed_time_never_goes_back_and_setting_takes_none() {
        let mut elapsed = Elapsed::default();
        let reading = |clock, value_ns| Event::Clock { thread: 0, site: 0, clock, value_ns, importing: false };
        elapsed.note(&reading(Clock::Wall, 1_000));
        elapsed.note(&reading(Clock::Monotonic, 70));
        elapsed.note(&reading(Clock::Monotonic, 90));
        assert_eq!(elapsed.ns, 20);
        elapsed.note(&Event::Jump { thread: 0, site: 0, to_ns: -9_000, reason: Reason::Set });
        elapsed.note(&reading(Clock::Wall, -8_995));
        assert_eq!(elapsed.ns, 25);
        elapsed.note(&reading(Clock::Monotonic, 80));
        assert_eq!(elapsed.ns, 25);
    }
}

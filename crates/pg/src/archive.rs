//! A data directory as one file: a table, then the files' bytes one after the other. Made to be unpacked quickly.
//!
//! ```text
//! magic 8 | table length u64 | table checksum u64 | table | bytes of all files
//! table: note length u32, note | entries: kind u8 (0 directory, 1 file), phase u8, path length u16, path,
//!        size u64, offset u64, checksum u64                                            all numbers little-endian
//! ```
//!
//! The phase says what a server needs to start (0) and what may follow while it does (1): files of databases that nobody is
//! connected to yet.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{fchown, DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Component, Path};

use crate::checksum::checksum;

const MAGIC: [u8; 8] = *b"HERMPG1\n";
const HEAD_LEN: u64 = 24;
/// Longest table in bytes: a hundred thousand files.
const TABLE_BYTES_MAX: u64 = 16 << 20;
/// Bytes that a thread reads at once.
const BLOCK_LEN: usize = 1 << 20;

/// When a file is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Start = 0,
    Later = 1,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    is_file: bool,
    phase: Phase,
    path: String,
    size: u64,
    offset: u64,
    checksum: u64,
}

/// An archive that was opened: its note and its table have been read and checked.
#[derive(Debug)]
pub struct Archive {
    /// What the writer wants to say to the reader.
    pub note: String,
    entries: Vec<Entry>,
    file: File,
    data_start: u64,
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the prepared cluster is damaged: {what}"))
}

/// Writes what lies below `root` to `target`. `phase_of` is asked for each path, relative to `root`; `None` leaves it out.
///
/// # Errors
/// Reading or writing failed.
pub fn write(root: &Path, target: &mut File, note: &str, phase_of: impl Fn(&str) -> Option<Phase>) -> io::Result<()> {
    let mut entries = Vec::new();
    list(root, "", &phase_of, &mut entries)?;
    // The table's length does not depend on the numbers in it, so it can be written last, in the room left for it.
    let table_len = encode_table(note, &entries).len() as u64;
    target.seek(SeekFrom::Start(HEAD_LEN + table_len))?;
    let mut out = BufWriter::with_capacity(BLOCK_LEN, &mut *target);
    let mut offset = 0;
    for entry in entries.iter_mut().filter(|entry| entry.is_file) {
        let bytes = fs::read(root.join(&entry.path))?;
        (entry.size, entry.offset, entry.checksum) = (bytes.len() as u64, offset, checksum(&bytes));
        out.write_all(&bytes)?;
        offset += entry.size;
    }
    out.flush()?;
    drop(out);
    let table = encode_table(note, &entries);
    target.seek(SeekFrom::Start(0))?;
    target.write_all(&MAGIC)?;
    target.write_all(&table_len.to_le_bytes())?;
    target.write_all(&checksum(&table).to_le_bytes())?;
    target.write_all(&table)
}

fn list(
    root: &Path,
    below: &str,
    phase_of: &impl Fn(&str) -> Option<Phase>,
    entries: &mut Vec<Entry>,
) -> io::Result<()> {
    let mut names: Vec<_> = fs::read_dir(root.join(below))?.collect::<io::Result<_>>()?;
    names.sort_by_key(fs::DirEntry::file_name);
    for found in names {
        let name = found.file_name().into_string().map_err(|_| damaged("a file name is not text"))?;
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        let kind = found.file_type()?;
        let Some(phase) = phase_of(&path).filter(|_| kind.is_dir() || kind.is_file()) else { continue };
        let entry = Entry { is_file: kind.is_file(), phase, path, size: 0, offset: 0, checksum: 0 };
        entries.push(entry.clone());
        if kind.is_dir() {
            list(root, &entry.path, phase_of, entries)?;
        }
    }
    Ok(())
}

fn encode_table(note: &str, entries: &[Entry]) -> Vec<u8> {
    let mut table = (note.len() as u32).to_le_bytes().to_vec();
    table.extend_from_slice(note.as_bytes());
    for entry in entries {
        table.extend_from_slice(&[u8::from(entry.is_file), entry.phase as u8]);
        table.extend_from_slice(&(entry.path.len() as u16).to_le_bytes());
        table.extend_from_slice(entry.path.as_bytes());
        for number in [entry.size, entry.offset, entry.checksum] {
            table.extend_from_slice(&number.to_le_bytes());
        }
    }
    table
}

/// Reads a table. Every path stays below the directory that it is unpacked into.
fn decode_table(mut table: &[u8]) -> Option<(String, Vec<Entry>)> {
    let take = |table: &mut &[u8], len: usize| -> Option<Vec<u8>> {
        let (piece, rest) = table.split_at_checked(len)?;
        *table = rest;
        Some(piece.to_vec())
    };
    let number = |table: &mut &[u8], len: usize| -> Option<u64> {
        Some(take(table, len)?.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    };
    let note_len = number(&mut table, 4)? as usize;
    let note = String::from_utf8(take(&mut table, note_len)?).ok()?;
    let mut entries = Vec::new();
    while !table.is_empty() {
        let (kind, phase) = (number(&mut table, 1)?, number(&mut table, 1)?);
        let path_len = number(&mut table, 2)? as usize;
        let path = String::from_utf8(take(&mut table, path_len)?).ok()?;
        let is_below = Path::new(&path).components().all(|part| matches!(part, Component::Normal(_)));
        if kind > 1 || phase > 1 || path.is_empty() || path.contains('\0') || !is_below {
            return None;
        }
        let phase = if phase == 0 { Phase::Start } else { Phase::Later };
        let (size, offset) = (number(&mut table, 8)?, number(&mut table, 8)?);
        offset.checked_add(size)?;
        entries.push(Entry { is_file: kind == 1, phase, path, size, offset, checksum: number(&mut table, 8)? });
    }
    Some((note, entries))
}

impl Archive {
    /// Opens an archive and checks its table and its length.
    ///
    /// # Errors
    /// `InvalidData` for a file that is damaged or no archive; else the system's error.
    pub fn open(path: &Path) -> io::Result<Archive> {
        let mut file = File::open(path)?;
        let file_len = file.metadata()?.len();
        let mut head = [0; HEAD_LEN as usize];
        file.read_exact(&mut head).map_err(|_| damaged("it is cut short"))?;
        let number = |at: usize| head[at..at + 8].iter().rev().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
        let (table_len, table_sum) = (number(8), number(16));
        if head[..8] != MAGIC || table_len > TABLE_BYTES_MAX.min(file_len) {
            return Err(damaged("its head is not ours"));
        }
        let mut table = vec![0; table_len as usize];
        file.read_exact(&mut table).map_err(|_| damaged("its table is cut short"))?;
        if checksum(&table) != table_sum {
            return Err(damaged("its table has changed"));
        }
        let (note, entries) = decode_table(&table).ok_or_else(|| damaged("its table cannot be read"))?;
        let data_start = HEAD_LEN + table_len;
        let data_len = file_len.saturating_sub(data_start);
        if entries.iter().any(|entry| entry.offset.checked_add(entry.size).is_none_or(|end| end > data_len)) {
            return Err(damaged("it is cut short"));
        }
        Ok(Archive { note, entries, file, data_start })
    }

    /// Makes all directories below `root`, which exists, for `owner` (user and group) where that is another.
    ///
    /// # Errors
    /// The system's error.
    pub fn make_directories(&self, root: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
        for entry in self.entries.iter().filter(|entry| !entry.is_file) {
            let path = root.join(&entry.path);
            DirBuilder::new().mode(0o700).create(&path)?;
            if let Some((user, group)) = owner {
                std::os::unix::fs::chown(&path, Some(user), Some(group))?;
            }
        }
        Ok(())
    }

    /// Unpacks the files of a phase, in `threads` threads.
    ///
    /// # Errors
    /// `InvalidData` for contents that are not what was packed; else the system's error.
    pub fn unpack(&self, root: &Path, phase: Phase, owner: Option<(u32, u32)>, threads: usize) -> io::Result<()> {
        let files: Vec<&Entry> = self.entries.iter().filter(|entry| entry.is_file && entry.phase == phase).collect();
        let total: u64 = files.iter().map(|entry| entry.size).sum();
        let share = total / threads.max(1) as u64 + 1;
        let mut parts: Vec<Vec<&Entry>> = vec![Vec::new()];
        let mut used = 0;
        for entry in files {
            if used >= share {
                parts.push(Vec::new());
                used = 0;
            }
            used += entry.size;
            parts.last_mut().into_iter().for_each(|part| part.push(entry));
        }
        std::thread::scope(|scope| {
            let (first, others) = parts.split_first().map_or((&[][..], &[][..]), |(first, rest)| (&first[..], rest));
            let running: Vec<_> =
                others.iter().map(|part| scope.spawn(move || self.unpack_files(root, part, owner))).collect();
            let own = self.unpack_files(root, first, owner);
            running.into_iter().fold(own, |result, thread| {
                result.and(thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread that unpacks has failed"))))
            })
        })
    }

    fn unpack_files(&self, root: &Path, files: &[&Entry], owner: Option<(u32, u32)>) -> io::Result<()> {
        let mut block = vec![0; BLOCK_LEN];
        // What of the archive `block` holds.
        let (mut from, mut len) = (0u64, 0usize);
        for entry in files {
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(root.join(&entry.path))?;
            if let Some((user, group)) = owner {
                fchown(&file, Some(user), Some(group))?;
            }
            let size = entry.size as usize;
            if size > BLOCK_LEN {
                let mut bytes = vec![0; size];
                self.file.read_exact_at(&mut bytes, self.data_start + entry.offset)?;
                write_checked(&mut file, &bytes, entry)?;
                continue;
            }
            if entry.offset < from || entry.offset + entry.size > from + len as u64 {
                from = entry.offset;
                len = read_up_to(&self.file, &mut block, self.data_start + from)?;
            }
            let start = (entry.offset - from) as usize;
            let bytes = block[..len].get(start..start + size).ok_or_else(|| damaged("it is cut short"))?;
            write_checked(&mut file, bytes, entry)?;
        }
        Ok(())
    }
}

fn write_checked(file: &mut File, bytes: &[u8], entry: &Entry) -> io::Result<()> {
    if checksum(bytes) != entry.checksum {
        return Err(damaged(&format!("the contents of {} have changed", entry.path)));
    }
    file.write_all(bytes)
}

fn read_up_to(file: &File, block: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut len = 0;
    while len < block.len() {
        match file.read_at(&mut block[len..], offset + len as u64)? {
            0 => break,
            read => len += read,
        }
    }
    Ok(len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::PathBuf;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("hermetic-pg-archive-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn packed(name: &str) -> (PathBuf, PathBuf) {
        let root = scratch(name);
        let source = root.join("source");
        fs::create_dir_all(source.join("base/1")).unwrap();
        fs::create_dir_all(source.join("empty")).unwrap();
        fs::write(source.join("PG_VERSION"), "15\n").unwrap();
        fs::write(source.join("base/1/big"), vec![7; 3 * BLOCK_LEN / 2]).unwrap();
        fs::write(source.join("base/1/nothing"), "").unwrap();
        fs::write(source.join("postmaster.pid"), "1").unwrap();
        let target = root.join("archive");
        let phase = |path: &str| match path {
            "postmaster.pid" => None,
            path if path.starts_with("base/1") => Some(Phase::Later),
            _ => Some(Phase::Start),
        };
        write(&source, &mut File::create(&target).unwrap(), "a note", phase).unwrap();
        (root, target)
    }

    #[test]
    fn what_was_packed_is_unpacked_in_two_phases() {
        let (root, target) = packed("phases");
        let archive = Archive::open(&target).unwrap();
        assert_eq!(archive.note, "a note");
        let out = root.join("out");
        fs::create_dir(&out).unwrap();
        archive.make_directories(&out, None).unwrap();
        archive.unpack(&out, Phase::Start, None, 2).unwrap();
        assert_eq!(fs::read_to_string(out.join("PG_VERSION")).unwrap(), "15\n");
        assert!(out.join("empty").is_dir() && !out.join("base/1/big").exists());
        archive.unpack(&out, Phase::Later, None, 2).unwrap();
        assert_eq!(fs::read(out.join("base/1/big")).unwrap(), vec![7; 3 * BLOCK_LEN / 2]);
        assert!(!out.join("postmaster.pid").exists());
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn damage_is_found() {
        let (root, target) = packed("damage");
        let good = fs::read(&target).unwrap();
        let out = root.join("out");
        fs::create_dir_all(&out).unwrap();
        for at in [0, 9, 20, 30, good.len() - 1] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&target, &bad).unwrap();
            let result = Archive::open(&target).and_then(|archive| {
                archive.make_directories(&out, None)?;
                archive.unpack(&out, Phase::Later, None, 1)
            });
            assert_eq!(result.unwrap_err().kind(), io::ErrorKind::InvalidData, "byte {at}");
            fs::remove_dir_all(&out).unwrap();
            fs::create_dir(&out).unwrap();
        }
        fs::write(&target, &good[..good.len() - 1]).unwrap();
        assert!(Archive::open(&target).unwrap_err().to_string().contains("cut short"));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn paths_stay_below() {
        for path in ["../x", "/etc/passwd", "a/../../b", "", "."] {
            let entry =
                Entry { is_file: true, phase: Phase::Start, path: path.to_owned(), size: 0, offset: 0, checksum: 0 };
            assert_eq!(decode_table(&encode_table("", &[entry])), None, "{path:?}");
        }
    }

    proptest! {
        #[test]
        fn any_table_can_be_read(table in prop::collection::vec(any::<u8>(), 0..200)) {
            decode_table(&table);
        }
    }
}

//! The format cannot change by accident: the schema has a hash, and old files stay readable.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use hermetic_journal::schema::{Type, KINDS};
use hermetic_journal::{finish, limits, preamble, verify, Form, Journal, FORMAT_VERSION};

/// Hashes of the schema by format version. A new format adds a row; an old row never changes.
const HASHES: &[(u32, u64)] = &[(2, 0xb5b2_525b_980a_a079), (3, 0x89ac_991c_22ea_9d63)];

/// Everything that decides how bytes are read, as text.
fn schema_text() -> String {
    let mut text = format!("{:?} {} {}\n", preamble::MAGIC, preamble::LEN, preamble::COMMITTED_OFFSET);
    for kind in KINDS {
        let _ = write!(text, "{} {} importing={}", kind.number, kind.name, kind.can_import);
        for field in kind.fields {
            let _ = write!(text, " {}:{:?}", field.name, field.kind);
        }
        text.push('\n');
    }
    text
}

/// FNV-1a, 64 bits: stable, and needs no crate.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn a_changed_schema_needs_a_new_format_version() {
    let found = hash(&schema_text());
    let noted = HASHES.iter().find(|(version, _)| *version == FORMAT_VERSION).map(|(_, hash)| *hash);
    assert_eq!(
        noted,
        Some(found),
        "the schema of format {FORMAT_VERSION} changed (hash {found:#x}): raise FORMAT_VERSION, add a row to HASHES, keep \
         reading the old one, add a journal to tests/journals, and tell spec/journal.md"
    );
}

#[test]
fn the_table_of_kinds_is_well_formed() {
    for (row, kind) in KINDS.iter().enumerate() {
        assert_eq!(usize::from(kind.number), row + 1, "{}", kind.name);
        assert!(kind.number < 0x40, "{}: the upper bits are marks", kind.name);
        let first_blob = kind.fields.iter().position(|field| field.kind.is_blob()).unwrap_or(kind.fields.len());
        assert!(kind.fields[first_blob..].iter().all(|field| field.kind.is_blob()), "{}: integers first", kind.name);
        assert!(first_blob <= limits::INTEGERS_MAX, "{}", kind.name);
        assert!(kind.fields.len() - first_blob <= limits::BLOBS_MAX, "{}", kind.name);
        for field in kind.fields {
            assert!(!["event", "importing", "text"].contains(&field.name), "{}: {} is taken", kind.name, field.name);
        }
    }
}

#[test]
fn every_kind_stands_in_the_spec() {
    let spec = std::fs::read_to_string(repository().join("spec/journal.md")).expect("spec/journal.md");
    for kind in KINDS {
        let fields: Vec<String> =
            kind.fields.iter().map(|field| format!("{} {}", field.name, type_name(field.kind))).collect();
        let row = format!("| {} | `{}` | {} |", kind.number, kind.name, fields.join(", "));
        assert!(spec.contains(&row), "spec/journal.md lacks the row {row}");
    }
    assert!(spec.contains(&format!("format version {FORMAT_VERSION}")), "the version");
}

fn type_name(kind: Type) -> String {
    match kind {
        Type::Count => "count".to_string(),
        Type::Identity => "identity".to_string(),
        Type::Signed => "signed".to_string(),
        Type::Nanoseconds => "ns".to_string(),
        Type::Name(names) => format!("({})", names.join(" ")),
        Type::Text => "text".to_string(),
        Type::Bytes => "bytes".to_string(),
        Type::Names => "names".to_string(),
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every journal ever committed stays readable. Each lies there in two forms, which must hold the same; files whose name
/// begins with `bad-` must be refused.
#[test]
fn the_corpus_is_readable() {
    let mut count = 0;
    for entry in std::fs::read_dir(repository().join("tests/journals")).expect("tests/journals") {
        let path = entry.expect("a readable folder").path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name == "README.md" {
            continue;
        }
        count += 1;
        let bytes = std::fs::read(&path).expect("a readable file");
        let decoded = Journal::decode(&bytes);
        if name.starts_with("bad-") {
            assert!(decoded.is_err(), "{name}");
            continue;
        }
        let journal = decoded.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(verify(&journal), [], "{name}");
        let readable = finish(journal.raw(), Form::READABLE).unwrap();
        let stem = name.split('.').next().unwrap_or_default();
        let twin = path.with_file_name(format!("{stem}.json"));
        let expected = std::fs::read(&twin).unwrap_or_else(|error| panic!("{}: {error}", twin.display()));
        assert_eq!(String::from_utf8(readable), String::from_utf8(expected), "{name}");
    }
    assert!(count >= 6, "the corpus has {count} files");
}

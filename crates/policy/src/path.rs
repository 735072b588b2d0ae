//! Paths of unix sockets, compared by their parts: `.`, doubled slashes and `..` mean nothing, and nothing is allocated.
//!
//! `..` is taken away with the part before it, by text. The kernel follows symbolic links first, so a path that climbs out
//! of a link is judged by how it reads; whoever wants more resolves it before asking.

/// The parts of a path from last to first, with `..` resolved. At the root, `..` stays at the root.
fn parts_from_end(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut climbs = 0usize;
    path.rsplit(|byte| *byte == b'/').filter(move |part| match *part {
        b"" | b"." => false,
        b".." => {
            climbs += 1;
            false
        }
        _ if climbs > 0 => {
            climbs -= 1;
            false
        }
        _ => true,
    })
}

/// Whether two absolute paths name the same place.
pub fn is_same(left: &[u8], right: &[u8]) -> bool {
    is_absolute(left) && is_absolute(right) && parts_from_end(left).eq(parts_from_end(right))
}

/// Whether an absolute path lies properly below a folder.
pub fn is_below(path: &[u8], folder: &[u8]) -> bool {
    if !is_absolute(path) || !is_absolute(folder) {
        return false;
    }
    let (depth, folder_depth) = (parts_from_end(path).count(), parts_from_end(folder).count());
    depth > folder_depth && parts_from_end(path).skip(depth - folder_depth).eq(parts_from_end(folder))
}

fn is_absolute(path: &[u8]) -> bool {
    path.first() == Some(&b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_and_slashes_mean_nothing() {
        assert!(is_same(b"/run//a/./b/../c", b"/run/a/c"));
        assert!(is_same(b"/../../x", b"/x"));
        assert!(is_same(b"/a/b/../../c/d/..", b"/c"));
        assert!(!is_same(b"/a/c", b"a/c"));
    }

    #[test]
    fn below_is_by_whole_parts_and_proper() {
        assert!(is_below(b"/run/pg/.s.PGSQL.5432", b"/run/pg"));
        assert!(is_below(b"/x", b"/"));
        assert!(!is_below(b"/run/pg", b"/run/pg"));
        assert!(!is_below(b"/run/pgx/s", b"/run/pg"));
        assert!(!is_below(b"/run/pg/../s", b"/run/pg"));
    }
}

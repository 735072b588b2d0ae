//! The loaded objects of this process, and rewriting their relocation slots.

use crate::elf::{Dynamic, Image, Machine, SlotKind};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::ffi::CStr;

/// An object that the dynamic linker has loaded. Valid while the linker's list is walked.
pub struct Object {
    base: usize,
    dynamic: usize,
    /// Address range of its loadable segments.
    start: usize,
    end: usize,
    /// Address range that is read-only after relocation.
    relro: (usize, usize),
    path: &'static CStr,
}

/// What the caller wants a slot to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch {
    /// What a bound slot holds now if it is the one meant.
    pub real: usize,
    pub hook: usize,
}

impl Object {
    pub fn base(&self) -> usize {
        self.base
    }

    pub fn path(&self) -> &CStr {
        self.path
    }

    pub fn contains(&self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// The object's own name for itself, or an empty slice (the program itself has none).
    pub fn soname(&self) -> &[u8] {
        self.tables().and_then(|tables| tables.soname(self)).unwrap_or(b"")
    }

    /// Rewrites every slot for which `choose` names a patch and which holds that patch's real address, or is still to be
    /// bound lazily. Returns how many were rewritten, and how many looked right but could not be.
    pub fn rewrite(&self, mut choose: impl FnMut(&[u8]) -> Option<Patch>) -> (u32, u32) {
        let Some(tables) = self.tables() else { return (0, 0) };
        let (mut done, mut failed) = (0, 0);
        let mut relro_open = false;
        tables.for_each_slot(self, Machine::HERE, |slot| {
            if slot.addend != 0 && slot.kind == SlotKind::Data {
                return;
            }
            let Some(patch) = choose(slot.name) else { return };
            let address = self.base.wrapping_add(slot.offset as usize);
            let word = address as *const AtomicUsize;
            // SAFETY: the dynamic linker wrote this word itself; it is mapped, aligned and lives as long as the object (H4).
            let now = unsafe { (*word).load(Ordering::Relaxed) };
            let is_lazy = slot.kind == SlotKind::Jump && !slot.is_defined && self.contains(now);
            if now == patch.hook || (now != patch.real && !is_lazy) {
                return;
            }
            if self.is_relro(address) && !relro_open {
                relro_open = self.protect_relro(libc::PROT_READ | libc::PROT_WRITE);
                if !relro_open {
                    failed += 1;
                    return;
                }
            }
            // SAFETY: as above, and the page is writable: either it always is, or it was opened just now (H4).
            unsafe { (*word).store(patch.hook, Ordering::Relaxed) };
            done += 1;
        });
        if relro_open {
            self.protect_relro(libc::PROT_READ);
        }
        (done, failed)
    }

    fn tables(&self) -> Option<Dynamic> {
        let address = self.dynamic.checked_sub(self.base)?;
        Dynamic::read(self, address as u64, self.base as u64)
    }

    fn is_relro(&self, address: usize) -> bool {
        (self.relro.0..self.relro.1).contains(&address)
    }

    fn protect_relro(&self, protection: c_int) -> bool {
        let page = page_size();
        let start = self.relro.0 & !(page - 1);
        // The linker protects whole pages only: the last, partial one stays writable, and stays so here.
        let end = self.relro.1 & !(page - 1);
        if end <= start {
            return true;
        }
        // SAFETY: the range is this object's own RELRO segment; making it writable for a moment, or read-only again, breaks
        // nobody: its words are only written by the dynamic linker, which has finished with them (H4).
        unsafe { libc::mprotect(start as *mut c_void, end - start, protection) == 0 }
    }
}

impl Image for Object {
    fn bytes(&self, address: u64, len: usize) -> Option<&[u8]> {
        let start = self.base.checked_add(usize::try_from(address).ok()?)?;
        if start < self.start || start.checked_add(len)? > self.end {
            return None;
        }
        // SAFETY: inside the object's loaded segments, which stay mapped while the linker's list is walked. The tables
        // that are read this way lie in segments that are loaded completely.
        Some(unsafe { core::slice::from_raw_parts(start as *const u8, len) })
    }

    fn text(&self, address: u64) -> Option<&[u8]> {
        let start = self.base.checked_add(usize::try_from(address).ok()?)?;
        if !self.contains(start) {
            return None;
        }
        // SAFETY: string tables end with a NUL inside their segment.
        Some(unsafe { CStr::from_ptr(start as *const core::ffi::c_char) }.to_bytes())
    }
}

/// How often objects were added to and removed from this process: an unequal pair means "look again".
pub fn generation() -> (u64, u64) {
    let mut pair = (0u64, 0u64);
    walk(&mut |info| {
        pair = (info.dlpi_adds, info.dlpi_subs);
        true
    });
    pair
}

/// Calls `visit` for every loaded object that has a dynamic section. The linker's list is locked meanwhile.
pub fn for_each(mut visit: impl FnMut(&Object)) {
    walk(&mut |info| {
        if let Some(object) = describe(info) {
            visit(&object);
        }
        false
    });
}

/// Whether an object of that soname is loaded. Asks no file system, unlike `dlopen`, which looks for the file even where it is told
/// not to load it.
pub fn is_loaded(soname: &CStr) -> bool {
    let mut is_loaded = false;
    for_each(|object| is_loaded |= object.soname() == soname.to_bytes());
    is_loaded
}

fn walk(visit: &mut dyn FnMut(&libc::dl_phdr_info) -> bool) {
    unsafe extern "C" fn each(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
        // SAFETY: `data` is the address of the caller's reference below, which outlives the walk.
        let visit = unsafe { &mut *data.cast::<&mut dyn FnMut(&libc::dl_phdr_info) -> bool>() };
        // SAFETY: the linker passes a valid record.
        let info = unsafe { &*info };
        c_int::from(visit(info))
    }
    let mut visit = visit;
    let data: *mut &mut dyn FnMut(&libc::dl_phdr_info) -> bool = &mut visit;
    // SAFETY: the callback matches the declared type, and `data` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(each), data.cast()) };
}

fn describe(info: &libc::dl_phdr_info) -> Option<Object> {
    let base = info.dlpi_addr as usize;
    let path = if info.dlpi_name.is_null() {
        c""
    } else {
        // SAFETY: the linker's names are C strings that live as long as their object.
        unsafe { CStr::from_ptr(info.dlpi_name) }
    };
    let mut object = Object { base, dynamic: 0, start: usize::MAX, end: 0, relro: (0, 0), path };
    if info.dlpi_phdr.is_null() {
        return None;
    }
    // SAFETY: the linker's record describes its program header table.
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    for header in headers {
        let start = base.wrapping_add(header.p_vaddr as usize);
        let end = start.wrapping_add(header.p_memsz as usize);
        match header.p_type {
            libc::PT_LOAD => {
                object.start = object.start.min(start);
                object.end = object.end.max(end);
            }
            libc::PT_DYNAMIC => object.dynamic = start,
            libc::PT_GNU_RELRO => object.relro = (start, end),
            _ => {}
        }
    }
    (object.dynamic != 0).then_some(object)
}

fn page_size() -> usize {
    // SAFETY: no preconditions.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_is_made_of_named_objects() {
        let mut sonames = Vec::new();
        for_each(|object| sonames.push(object.soname().to_vec()));
        assert!(sonames.iter().any(|name| name == b"libc.so.6"));
        assert_eq!(generation(), generation());
    }

    #[test]
    fn a_slot_can_be_rewritten_and_put_back() {
        unsafe extern "C" fn fixed_pid() -> libc::pid_t {
            4711
        }
        let real = crate::symbol::global(c"getpid").expect("libc has it");
        let ours = crate::symbol::object_base(fixed_pid as *const () as usize).expect("this test");
        let swap = |from: usize, to: usize| {
            let mut count = 0;
            for_each(|object| {
                if object.base() == ours {
                    count += object.rewrite(|name| (name == b"getpid").then_some(Patch { real: from, hook: to })).0;
                }
            });
            count
        };
        // SAFETY: no preconditions.
        let before = unsafe { libc::getpid() };
        assert!(swap(real, fixed_pid as *const () as usize) >= 1);
        // SAFETY: no preconditions.
        let during = unsafe { libc::getpid() };
        assert!(swap(fixed_pid as *const () as usize, real) >= 1);
        // SAFETY: no preconditions.
        let after = unsafe { libc::getpid() };
        assert_eq!((during, after), (4711, before));
    }
}

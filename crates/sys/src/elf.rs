//! Relocation slots of one ELF object: which words the dynamic linker filled with addresses of named functions.
//!
//! Works on any [`Image`], so that a loaded object and an ELF file in a test go through the same code. Only 64-bit
//! little-endian objects exist here. Layouts and numbers are those of the System V gABI and the x86-64 and AArch64 psABIs.

/// Which machine's relocation numbers apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    X86_64,
    Aarch64,
}

impl Machine {
    /// The machine that this library was built for.
    pub const HERE: Machine = if cfg!(target_arch = "aarch64") { Machine::Aarch64 } else { Machine::X86_64 };

    /// What a relocation of type `kind` fills, if it is one that can hold a function's address.
    pub fn slot_kind(self, kind: u32) -> Option<SlotKind> {
        match (self, kind) {
            // R_X86_64_JUMP_SLOT, R_AARCH64_JUMP_SLOT
            (Machine::X86_64, 7) | (Machine::Aarch64, 1026) => Some(SlotKind::Jump),
            // R_X86_64_64, R_X86_64_GLOB_DAT; R_AARCH64_ABS64, R_AARCH64_GLOB_DAT
            (Machine::X86_64, 1 | 6) | (Machine::Aarch64, 257 | 1025) => Some(SlotKind::Data),
            _ => None,
        }
    }
}

/// How a slot is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotKind {
    /// By the procedure linkage table; under lazy binding it points back into its own object until the first call.
    Jump,
    /// When the object is loaded.
    Data,
}

/// A word that holds the address of a named symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot<'a> {
    /// Address of the word, relative to the object's load address.
    pub offset: u64,
    pub kind: SlotKind,
    pub name: &'a [u8],
    /// Added to the symbol's address; anything but zero is not a plain reference to the function.
    pub addend: i64,
    /// The object defines the symbol itself.
    pub is_defined: bool,
}

/// Bytes of an object by their address relative to its load address.
pub trait Image {
    /// `len` bytes at `address`, or `None` where the object has none.
    fn bytes(&self, address: u64, len: usize) -> Option<&[u8]>;
    /// The C string at `address`, without its NUL.
    fn text(&self, address: u64) -> Option<&[u8]>;
}

/// The tables of an object's dynamic section that slots need. Addresses are relative to the load address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dynamic {
    symbols: u64,
    strings: u64,
    jump: Table,
    rela: Table,
    name: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Table {
    address: u64,
    len: u64,
}

const DT_NULL: u64 = 0;
const DT_PLTRELSZ: u64 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_SONAME: u64 = 14;
const DT_JMPREL: u64 = 23;

const DYN_SIZE: usize = 16;
const RELA_SIZE: usize = 24;
const SYM_SIZE: u64 = 24;
/// No real object's dynamic section comes near this; it bounds the walk over a damaged one.
const DYN_ENTRIES_MAX: u64 = 4096;

impl Dynamic {
    /// Reads the dynamic section at `address`. `base` is subtracted from pointers that the dynamic linker has already
    /// relocated (glibc does so in place for most objects, not for the vDSO).
    pub fn read(image: &impl Image, address: u64, base: u64) -> Option<Dynamic> {
        let mut dynamic = Dynamic::default();
        let mut soname = None;
        for index in 0..DYN_ENTRIES_MAX {
            let entry = image.bytes(address + index * DYN_SIZE as u64, DYN_SIZE)?;
            let (tag, value) = (word(entry, 0), word(entry, 8));
            let relative = if value >= base { value - base } else { value };
            match tag {
                DT_NULL => break,
                DT_SYMTAB => dynamic.symbols = relative,
                DT_STRTAB => dynamic.strings = relative,
                DT_JMPREL => dynamic.jump.address = relative,
                DT_PLTRELSZ => dynamic.jump.len = value,
                DT_RELA => dynamic.rela.address = relative,
                DT_RELASZ => dynamic.rela.len = value,
                DT_SONAME => soname = Some(value),
                _ => {}
            }
        }
        dynamic.name = soname.map(|offset| dynamic.strings + offset);
        (dynamic.symbols != 0 && dynamic.strings != 0).then_some(dynamic)
    }

    /// The object's own name for itself, for example `libc.so.6`.
    pub fn soname<'a>(&self, image: &'a impl Image) -> Option<&'a [u8]> {
        image.text(self.name?)
    }

    /// Calls `visit` for every slot that holds the address of a named symbol.
    pub fn for_each_slot<'a>(&self, image: &'a impl Image, machine: Machine, mut visit: impl FnMut(Slot<'a>)) {
        for table in [self.rela, self.jump] {
            for index in 0..table.len / RELA_SIZE as u64 {
                let place = table.address + index * RELA_SIZE as u64;
                let Some(entry) = image.bytes(place, RELA_SIZE) else { break };
                let info = word(entry, 8);
                let Some(kind) = machine.slot_kind(info as u32) else { continue };
                let Some(slot) = self.slot(image, entry, kind, info >> 32) else { continue };
                visit(slot);
            }
        }
    }

    fn slot<'a>(&self, image: &'a impl Image, entry: &[u8], kind: SlotKind, symbol: u64) -> Option<Slot<'a>> {
        if symbol == 0 {
            return None;
        }
        let record = image.bytes(self.symbols + symbol * SYM_SIZE, SYM_SIZE as usize)?;
        let name = u32::from_le_bytes([record[0], record[1], record[2], record[3]]);
        let section = u16::from_le_bytes([record[6], record[7]]);
        Some(Slot {
            offset: word(entry, 0),
            kind,
            name: image.text(self.strings + u64::from(name))?,
            addend: word(entry, 16) as i64,
            is_defined: section != 0,
        })
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(eight)
}

/// An ELF file in memory, addressed as it would be loaded.
pub struct File<'a> {
    data: &'a [u8],
    pub machine: Machine,
    /// Address of the dynamic section.
    pub dynamic: u64,
    loads: Vec<Load>,
}

struct Load {
    address: u64,
    offset: u64,
    len: u64,
}

const EM_X86_64: u16 = 62;
const EM_AARCH64: u16 = 183;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;

impl<'a> File<'a> {
    /// Parses the header of a 64-bit little-endian shared object or executable of a machine that we know.
    pub fn parse(data: &'a [u8]) -> Option<File<'a>> {
        if data.get(..6)? != [0x7f, b'E', b'L', b'F', 2, 1] {
            return None;
        }
        let half = |at: usize| data.get(at..at + 2).map(|two| u16::from_le_bytes([two[0], two[1]]));
        let machine = match half(18)? {
            EM_X86_64 => Machine::X86_64,
            EM_AARCH64 => Machine::Aarch64,
            _ => return None,
        };
        let table = usize::try_from(word(data.get(..40)?, 32)).ok()?;
        let size = usize::from(half(54)?);
        let mut file = File { data, machine, dynamic: 0, loads: Vec::new() };
        for index in 0..usize::from(half(56)?) {
            let start = table.checked_add(index.checked_mul(size)?)?;
            let header = data.get(start..start.checked_add(56)?)?;
            let (offset, address, len) = (word(header, 8), word(header, 16), word(header, 32));
            match u32::from_le_bytes([header[0], header[1], header[2], header[3]]) {
                PT_LOAD => file.loads.push(Load { address, offset, len }),
                PT_DYNAMIC => file.dynamic = address,
                _ => {}
            }
        }
        (file.dynamic != 0).then_some(file)
    }

    fn rest(&self, address: u64) -> Option<&'a [u8]> {
        let load = self.loads.iter().find(|load| address >= load.address && address - load.address < load.len)?;
        let start = usize::try_from(load.offset.checked_add(address - load.address)?).ok()?;
        let end = usize::try_from(load.offset.checked_add(load.len)?).ok()?.min(self.data.len());
        self.data.get(start..end)
    }
}

impl Image for File<'_> {
    fn bytes(&self, address: u64, len: usize) -> Option<&[u8]> {
        self.rest(address)?.get(..len)
    }

    fn text(&self, address: u64) -> Option<&[u8]> {
        let rest = self.rest(address)?;
        let end = rest.iter().position(|&byte| byte == 0)?;
        Some(&rest[..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A minimal shared object: one PT_LOAD over the whole file, one dynamic section, three symbols.
    fn object(machine: u16, kinds: &[(u32, u32)]) -> Vec<u8> {
        let strings = b"\0clock_gettime\0own\0libtest.so\0";
        let (symbols_at, strings_at, rela_at, dynamic_at) = (0x100usize, 0x180usize, 0x200usize, 0x400usize);
        let mut file = vec![0u8; 0x600];
        file[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
        file[18..20].copy_from_slice(&machine.to_le_bytes());
        file[32..40].copy_from_slice(&64u64.to_le_bytes());
        file[54..56].copy_from_slice(&56u16.to_le_bytes());
        file[56..58].copy_from_slice(&2u16.to_le_bytes());
        let mut header = |index: usize, kind: u32, address: usize, len: usize| {
            let at = 64 + index * 56;
            file[at..at + 4].copy_from_slice(&kind.to_le_bytes());
            file[at + 8..at + 16].copy_from_slice(&(address as u64).to_le_bytes());
            file[at + 16..at + 24].copy_from_slice(&(address as u64).to_le_bytes());
            file[at + 32..at + 40].copy_from_slice(&(len as u64).to_le_bytes());
        };
        header(0, PT_LOAD, 0, 0x600);
        header(1, PT_DYNAMIC, dynamic_at, 0x100);
        file[strings_at..strings_at + strings.len()].copy_from_slice(strings);
        // Symbol 1: undefined clock_gettime; symbol 2: own, defined in section 5.
        file[symbols_at + 24..symbols_at + 28].copy_from_slice(&1u32.to_le_bytes());
        file[symbols_at + 48..symbols_at + 52].copy_from_slice(&15u32.to_le_bytes());
        file[symbols_at + 54..symbols_at + 56].copy_from_slice(&5u16.to_le_bytes());
        for (index, &(kind, symbol)) in kinds.iter().enumerate() {
            let at = rela_at + index * RELA_SIZE;
            file[at..at + 8].copy_from_slice(&(0x5000 + index as u64 * 8).to_le_bytes());
            file[at + 8..at + 16].copy_from_slice(&(u64::from(symbol) << 32 | u64::from(kind)).to_le_bytes());
        }
        let entries = [
            (DT_SYMTAB, symbols_at as u64),
            (DT_STRTAB, strings_at as u64),
            (DT_RELA, rela_at as u64),
            (DT_RELASZ, (kinds.len() * RELA_SIZE) as u64),
            (DT_SONAME, 19),
        ];
        for (index, (tag, value)) in entries.iter().enumerate() {
            let at = dynamic_at + index * DYN_SIZE;
            file[at..at + 8].copy_from_slice(&tag.to_le_bytes());
            file[at + 8..at + 16].copy_from_slice(&value.to_le_bytes());
        }
        file
    }

    fn slots(data: &[u8]) -> Vec<(String, SlotKind, u64, bool)> {
        let file = File::parse(data).expect("an ELF file");
        let dynamic = Dynamic::read(&file, file.dynamic, 0).expect("a dynamic section");
        assert_eq!(dynamic.soname(&file), Some(&b"libtest.so"[..]));
        let mut found = Vec::new();
        dynamic.for_each_slot(&file, file.machine, |slot| {
            let name = String::from_utf8_lossy(slot.name).into_owned();
            found.push((name, slot.kind, slot.offset, slot.is_defined));
        });
        found
    }

    #[test]
    fn each_machine_knows_its_own_numbers() {
        let expected = |offsets: [u64; 3]| {
            vec![
                ("clock_gettime".to_owned(), SlotKind::Jump, offsets[0], false),
                ("clock_gettime".to_owned(), SlotKind::Data, offsets[1], false),
                ("own".to_owned(), SlotKind::Data, offsets[2], true),
            ]
        };
        let x86 = object(EM_X86_64, &[(7, 1), (8, 0), (6, 1), (1, 2), (1026, 1)]);
        assert_eq!(slots(&x86), expected([0x5000, 0x5010, 0x5018]));
        let arm = object(EM_AARCH64, &[(1026, 1), (1027, 0), (1025, 1), (257, 2), (7, 1)]);
        assert_eq!(slots(&arm), expected([0x5000, 0x5010, 0x5018]));
    }

    #[test]
    fn damaged_files_give_nothing_instead_of_a_panic() {
        let whole = object(EM_AARCH64, &[(1026, 1), (1025, 2)]);
        for len in 0..whole.len() {
            if let Some(file) = File::parse(&whole[..len]) {
                if let Some(dynamic) = Dynamic::read(&file, file.dynamic, 0) {
                    dynamic.for_each_slot(&file, file.machine, |_| {});
                }
            }
        }
        for at in 0..whole.len() {
            let mut bent = whole.clone();
            bent[at] ^= 0xff;
            if let Some(file) = File::parse(&bent) {
                if let Some(dynamic) = Dynamic::read(&file, file.dynamic, 0) {
                    dynamic.for_each_slot(&file, file.machine, |_| {});
                }
            }
        }
    }

    #[test]
    fn this_test_binary_has_slots_of_its_own() {
        let path = std::env::current_exe().expect("a path");
        let data = std::fs::read(path).expect("readable");
        let file = File::parse(&data).expect("an ELF file");
        assert_eq!(file.machine, Machine::HERE);
        let dynamic = Dynamic::read(&file, file.dynamic, 0).expect("dynamic");
        let mut names = Vec::new();
        dynamic.for_each_slot(&file, file.machine, |slot| names.push(slot.name.to_vec()));
        assert!(names.iter().any(|name| name == b"write"), "std writes through libc");
    }
}

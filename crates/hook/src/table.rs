//! The hook table: which libc names are answered here, and where the real ones are.
//!
//! A file of `libc/` declares its hooks with [`hooks!`]: the macro makes a `real` function of each name, which calls what the
//! name meant in this process before we came, and one `TABLE`. Real addresses are looked up once, while attaching
//! (invariant H3); a name that this libc does not have stays without a row in any object and is never called.

use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering};

/// The real function of a name.
pub struct Real(AtomicUsize);

impl Real {
    pub const fn unknown() -> Real {
        Real(AtomicUsize::new(0))
    }

    pub fn set(&self, address: usize) {
        self.0.store(address, Ordering::Release);
    }

    #[inline(always)]
    pub fn address(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A row of the table.
pub struct Hook {
    pub name: &'static CStr,
    pub function: Function,
    pub real: &'static Real,
    /// Which objects get this hook. Rows for special callers come before the general one.
    pub caller: Caller,
}

/// Whose slot a hook is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    Anyone,
    /// The interpreter's own image.
    Interpreter,
    /// The object that implements the interpreter's sockets: `_socket`, or the image if it is built in.
    InterpreterSockets,
}

/// The address of a hook.
pub struct Function(pub *const ());

// SAFETY: the address of a function is the same for every thread.
unsafe impl Sync for Function {}

macro_rules! hooks {
    ($($(#[$caller:ident = $alias:ident])? $name:ident ( $($arg:ident : $type:ty),* ) $(-> $result:ty)?;)*) => {
        /// What the names meant before.
        #[allow(clippy::too_many_arguments, reason = "libc's signatures")]
        pub mod real {
            #[allow(unused_imports)]
            use super::*;
            $(
                pub mod $name {
                    pub static ADDRESS: $crate::table::Real = $crate::table::Real::unknown();
                }

                /// The real function.
                ///
                /// # Safety
                /// As for the libc function of that name.
                #[inline(always)]
                #[allow(dead_code, reason = "a hook may answer through a twin of its name")]
                pub unsafe fn $name($($arg: $type),*) $(-> $result)? {
                    type Function = unsafe extern "C" fn($($type),*) $(-> $result)?;
                    // SAFETY: a hook runs only after `attach` stored the address of this very function (H3).
                    let function = unsafe { core::mem::transmute::<usize, Function>($name::ADDRESS.address()) };
                    // SAFETY: the caller keeps the function's contract.
                    unsafe { function($($arg),*) }
                }
            )*
        }

        /// The rows of this file.
        pub static TABLE: &[$crate::table::Hook] = &[
            $(
                $($crate::table::Hook {
                    name: $crate::table::c_name(concat!(stringify!($name), "\0")),
                    function: $crate::table::Function($alias as *const ()),
                    real: &real::$name::ADDRESS,
                    caller: $crate::table::Caller::$caller,
                },)?
                $crate::table::Hook {
                    name: $crate::table::c_name(concat!(stringify!($name), "\0")),
                    function: $crate::table::Function($name as *const ()),
                    real: &real::$name::ADDRESS,
                    caller: $crate::table::Caller::Anyone,
                },
            )*
        ];
    };
}
pub(crate) use hooks;

/// A C string from text that ends with a NUL; a mistake is a compile error.
pub const fn c_name(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("the name contains a NUL"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn the_table_and_the_specification_name_the_same_functions() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/hooks.toml");
        let text = std::fs::read_to_string(path).expect("spec/hooks.toml is in the checkout");
        let names = text.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        let specified: BTreeSet<&str> = names.collect();
        let hooks = crate::libc::tables().flatten();
        let hooked: BTreeSet<&str> = hooks.map(|hook| hook.name.to_str().expect("ASCII")).collect();
        assert_eq!(hooked, specified);
    }

    #[test]
    fn special_callers_come_before_everyone() {
        for table in crate::libc::tables() {
            for (index, hook) in table.iter().enumerate().filter(|(_, hook)| hook.caller != super::Caller::Anyone) {
                let general = table.iter().position(|row| row.name == hook.name && row.caller == super::Caller::Anyone);
                assert!(general.is_some_and(|general| general > index), "{:?}", hook.name);
            }
        }
    }
}

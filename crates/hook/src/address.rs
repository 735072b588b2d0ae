//! Socket addresses, from C's bytes to what the policy judges.

use core::ffi::c_void;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use hermetic_policy::Target;
use libc::socklen_t;

/// A copy of a socket address, so that what is judged cannot change afterwards.
pub struct Address {
    bytes: [u8; Address::LEN_MAX],
    len: usize,
    /// For a relative unix path: the working directory is in front of it here.
    path: [u8; Address::PATH_MAX],
    path_len: usize,
}

const FAMILY_LEN: usize = 2;

impl Address {
    const LEN_MAX: usize = 128;
    const PATH_MAX: usize = 4096 + Address::LEN_MAX;

    /// Copies an address. None for what the kernel will refuse as malformed, and for an unspecified address, which breaks a
    /// connection off.
    ///
    /// # Safety
    /// `address` is null or valid for reading `len` bytes.
    pub unsafe fn read(address: *const c_void, len: socklen_t) -> Option<Address> {
        let len = len as usize;
        if address.is_null() || !(FAMILY_LEN..=Address::LEN_MAX).contains(&len) {
            return None;
        }
        // SAFETY: the caller's promise.
        let given = unsafe { core::slice::from_raw_parts(address.cast::<u8>(), len) };
        let mut copy = Address { bytes: [0; Address::LEN_MAX], len, path: [0; Address::PATH_MAX], path_len: 0 };
        copy.bytes[..len].copy_from_slice(given);
        let needed = match copy.family() {
            libc::AF_UNSPEC => return None,
            libc::AF_INET => size_of::<libc::sockaddr_in>(),
            libc::AF_INET6 => size_of::<libc::sockaddr_in6>() - size_of::<u32>(),
            _ => FAMILY_LEN,
        };
        if len < needed {
            return None;
        }
        copy.complete_path();
        Some(copy)
    }

    /// The address that a descriptor is connected to; none for anything but a connected socket.
    pub fn peer(fd: core::ffi::c_int) -> Option<Address> {
        // SAFETY: the buffer is as long as `len` says and aligned for every address.
        Address::asked(|storage, len| unsafe { libc::getpeername(fd, storage, len) })
    }

    /// The address of a socket itself; none for anything else.
    pub fn local(fd: core::ffi::c_int) -> Option<Address> {
        // SAFETY: as above.
        Address::asked(|storage, len| unsafe { libc::getsockname(fd, storage, len) })
    }

    fn asked(ask: impl FnOnce(*mut libc::sockaddr, *mut socklen_t) -> i32) -> Option<Address> {
        let mut storage = [0u64; Address::LEN_MAX / 8];
        let mut len = Address::LEN_MAX as socklen_t;
        if ask(storage.as_mut_ptr().cast(), &mut len) != 0 {
            return None;
        }
        // SAFETY: the kernel wrote `len` bytes, or fewer than the buffer has.
        unsafe { Address::read(storage.as_ptr().cast(), len.min(Address::LEN_MAX as socklen_t)) }
    }

    /// The address that a descriptor is bound to.
    pub fn own(fd: core::ffi::c_int) -> Option<Address> {
        let mut storage = [0u64; Address::LEN_MAX / 8];
        let mut len = Address::LEN_MAX as socklen_t;
        // SAFETY: the buffer is as long as `len` says and aligned for every address.
        let error = unsafe { libc::getsockname(fd, storage.as_mut_ptr().cast(), &mut len) };
        if error != 0 {
            return None;
        }
        // SAFETY: the kernel wrote `len` bytes, or fewer than the buffer has.
        unsafe { Address::read(storage.as_ptr().cast(), len.min(Address::LEN_MAX as socklen_t)) }
    }

    fn family(&self) -> i32 {
        i32::from(u16::from_ne_bytes([self.bytes[0], self.bytes[1]]))
    }

    /// An internet address of this machine alone.
    pub fn is_loopback(&self) -> bool {
        matches!(self.target(), Target::Address { ip, .. } if ip.is_loopback())
    }

    pub fn is_internet(&self) -> bool {
        matches!(self.family(), libc::AF_INET | libc::AF_INET6)
    }

    /// What the policy judges.
    pub fn target(&self) -> Target<'_> {
        let port = Some(u16::from_be_bytes([self.bytes[2], self.bytes[3]]));
        match self.family() {
            libc::AF_INET => {
                let [.., a, b, c, d] = first::<8>(&self.bytes);
                Target::Address { ip: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), port }
            }
            libc::AF_INET6 => {
                let mut ip = [0; 16];
                ip.copy_from_slice(&self.bytes[8..24]);
                Target::Address { ip: IpAddr::V6(Ipv6Addr::from(ip)), port }
            }
            libc::AF_UNIX if self.path_len > 0 => Target::Unix { path: &self.path[..self.path_len] },
            libc::AF_UNIX => Target::Unix { path: &self.bytes[FAMILY_LEN..self.len] },
            family => Target::Other { family: family as u16 },
        }
    }

    fn complete_path(&mut self) {
        let is_relative = self.family() == libc::AF_UNIX && !matches!(self.bytes[FAMILY_LEN], 0 | b'/');
        if !is_relative || self.len == FAMILY_LEN {
            return;
        }
        let room = Address::PATH_MAX - Address::LEN_MAX;
        // SAFETY: the buffer has more than `room` bytes.
        let found = unsafe { libc::getcwd(self.path.as_mut_ptr().cast(), room) };
        if found.is_null() {
            return;
        }
        let mut end = self.path.iter().position(|&byte| byte == 0).unwrap_or(0);
        self.path[end] = b'/';
        end += 1;
        let name = &self.bytes[FAMILY_LEN..self.len];
        self.path[end..end + name.len()].copy_from_slice(name);
        self.path_len = end + name.len();
    }
}

fn first<const LEN: usize>(bytes: &[u8]) -> [u8; LEN] {
    let mut out = [0; LEN];
    out.copy_from_slice(&bytes[..LEN]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Option<Address> {
        // SAFETY: the slice is valid for its length.
        unsafe { Address::read(bytes.as_ptr().cast(), bytes.len() as socklen_t) }
    }

    #[test]
    fn addresses_are_read_in_network_order() {
        let mut bytes = vec![libc::AF_INET as u8, 0, 0x01, 0xbb, 203, 0, 113, 9];
        bytes.extend([0; 8]);
        let address = read(&bytes).expect("well formed");
        assert_eq!(address.target().to_string(), "203.0.113.9:443");
        bytes.truncate(10);
        assert!(read(&bytes).is_none(), "too short: the kernel's business");
        assert!(read(&[0; 16]).is_none(), "unspecified: breaks a connection off");
    }

    #[test]
    fn relative_unix_paths_are_completed() {
        let mut bytes = vec![libc::AF_UNIX as u8, 0];
        bytes.extend(b"sock\0");
        let address = read(&bytes).expect("well formed");
        let here = std::env::current_dir().expect("there is one");
        assert_eq!(address.target().to_string(), here.join("sock").to_str().expect("text"));
        bytes[2] = 0;
        assert!(read(&bytes).expect("abstract").target().to_string().starts_with("unix:@"));
    }
}

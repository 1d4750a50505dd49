//! Which addresses a call may go to. Pure: the same answer for the same address, whoever asks.
//!
//! Only public addresses, unless a function says otherwise. Addresses that have another one in them (mapped, translated,
//! tunnelled) are refused whole: nobody who means a public address writes it like that.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use reqwest::Url;

/// Not public in IPv4: "this" network, private, shared (CGNAT), loopback, link-local with metadata services, protocol
/// assignments, documentation, 6to4 relays, benchmarks, multicast, reserved, and the metadata address of Azure.
const REFUSED_V4: [Ipv4Net; 16] = [
    v4([0, 0, 0, 0], 8),
    v4([10, 0, 0, 0], 8),
    v4([100, 64, 0, 0], 10),
    v4([127, 0, 0, 0], 8),
    v4([168, 63, 129, 16], 32),
    v4([169, 254, 0, 0], 16),
    v4([172, 16, 0, 0], 12),
    v4([192, 0, 0, 0], 24),
    v4([192, 0, 2, 0], 24),
    v4([192, 88, 99, 0], 24),
    v4([192, 168, 0, 0], 16),
    v4([198, 18, 0, 0], 15),
    v4([198, 51, 100, 0], 24),
    v4([203, 0, 113, 0], 24),
    v4([224, 0, 0, 0], 4),
    v4([240, 0, 0, 0], 4),
];

/// What is public in IPv6. Outside are loopback, mapped and translated addresses, ULA, link-local and multicast.
const GLOBAL_V6: Ipv6Net = v6([0x2000, 0], 3);

/// Not public in spite of that: protocol assignments with Teredo, documentation, 6to4.
const REFUSED_V6: [Ipv6Net; 4] =
    [v6([0x2001, 0], 23), v6([0x2001, 0x0db8], 32), v6([0x2002, 0], 16), v6([0x3fff, 0], 20)];

const fn v4(octets: [u8; 4], bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]), bits)
}

const fn v6(start: [u16; 2], bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(start[0], start[1], 0, 0, 0, 0, 0, 0), bits)
}

/// Why an address is not called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{host} is not called: {reason}{}", if *.is_private { PRIVATE_ADVICE } else { "" })]
pub struct Refusal {
    host: String,
    reason: String,
    /// The address is refused because it is not public.
    is_private: bool,
}

/// What the author of a function can do about an address that is not public.
const PRIVATE_ADVICE: &str = "; list the host in allow_hosts if this is meant";

impl Refusal {
    /// The refusal with advice for a document that a tenant reads: it has no `allow_hosts`.
    pub(super) fn of_document(&self) -> String {
        let Refusal { host, reason, is_private } = self;
        let advice = match is_private {
            true => {
                "; use a public address, or have the operator of the node set stored_functions.private_addresses"
            }
            false => "",
        };
        format!("{host} is not called: {reason}{advice}")
    }
}

/// What a function may call besides public addresses.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Guard {
    everything: bool,
    hosts: BTreeSet<String>,
    networks: Vec<IpNet>,
}

impl Guard {
    /// A guard that lets these hosts, addresses and networks through as well.
    ///
    /// # Errors
    /// Says which entry is none of these.
    pub fn new(allow_private: bool, allow_hosts: &[String]) -> Result<Self, String> {
        let mut guard = Guard { everything: allow_private, ..Guard::default() };
        for entry in allow_hosts {
            let bare = entry.trim_start_matches('[').trim_end_matches(']');
            if let Ok(network) = bare.parse::<IpNet>() {
                guard.networks.push(network);
            } else if let Ok(address) = bare.parse::<IpAddr>() {
                guard.networks.push(address.into());
            } else if is_host_name(entry) {
                guard.hosts.insert(plain_host(entry));
            } else {
                return Err(format!(
                    "{entry:?} is no host name, address or network; write \"intranet.example\", \"10.1.2.3\" or \
                     \"10.1.0.0/16\""
                ));
            }
        }
        Ok(guard)
    }

    /// Whether this lets more through than public addresses.
    pub fn is_open(&self) -> bool {
        *self != Guard::default()
    }

    /// Checks what can be seen without looking up a name: the scheme, and an address that is written out in whatever form.
    ///
    /// # Errors
    /// The refusal.
    pub fn check_url(&self, url: &Url) -> Result<(), Refusal> {
        let refuse =
            |host: String, reason: &str| Err(Refusal { host, reason: reason.to_owned(), is_private: false });
        if !matches!(url.scheme(), "http" | "https") {
            return refuse(url.as_str().chars().take(80).collect(), "only http and https are called");
        }
        // The brackets of an IPv6 address are not part of it. A name that is an address in decimal, octal or
        // hexadecimal form has become one when the URL was parsed.
        let host = url.host_str().unwrap_or_default();
        match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            Ok(address) => self.check_address(host, address),
            Err(_) if host.is_empty() => refuse(url.as_str().chars().take(80).collect(), "it names no host"),
            Err(_) => Ok(()),
        }
    }

    /// Checks the addresses that a name stands for. One bad address refuses all: a name that means both a public and a
    /// private place is not to be trusted.
    ///
    /// # Errors
    /// The refusal.
    pub fn check_addresses(&self, host: &str, addresses: &[IpAddr]) -> Result<(), Refusal> {
        if addresses.is_empty() {
            return Err(Refusal {
                host: host.to_owned(),
                reason: "the name stands for no address".to_owned(),
                is_private: false,
            });
        }
        addresses.iter().try_for_each(|address| self.check_address(host, *address))
    }

    fn check_address(&self, host: &str, address: IpAddr) -> Result<(), Refusal> {
        let allowed = self.everything
            || is_public(address)
            || self.hosts.contains(&plain_host(host))
            || self.networks.iter().any(|network| network.contains(&address));
        if allowed {
            return Ok(());
        }
        let reason = format!("{address} is not a public address");
        Err(Refusal { host: host.to_owned(), reason, is_private: true })
    }
}

/// Whether anybody on the internet could call this address.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !REFUSED_V4.iter().any(|network| network.contains(&address)),
        IpAddr::V6(address) => {
            GLOBAL_V6.contains(&address) && !REFUSED_V6.iter().any(|network| network.contains(&address))
        }
    }
}

/// A host name as it is compared: lowercase, without the dot of the root.
fn plain_host(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

fn is_host_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty() && text.len() <= 253 && text.chars().all(allowed) && !text.starts_with(['.', '-'])
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;

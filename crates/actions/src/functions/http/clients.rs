//! Connections that go to checked addresses only.
//!
//! The check sits in the lookup of names that a connection itself uses, so there is nothing between the check and the
//! connection that could change the answer. Addresses that are written out are never looked up and are checked in the
//! URL. Functions with different rules share no connections: one must not get to use what only the other may open.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use reqwest::Client;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;

use super::guard::Guard;

/// Most sets of connections; beyond this many different rules all are opened anew.
const MAX_CLIENTS: usize = 64;

/// Looks up host names.
#[async_trait]
pub trait Resolver: Send + Sync + 'static {
    /// All addresses of a host.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The machine's own way to look up names.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// One set of connections for each set of rules.
pub(crate) struct Clients {
    resolver: Arc<dyn Resolver>,
    clients: Mutex<HashMap<Guard, Client>>,
}

impl Clients {
    pub(crate) fn new(resolver: Arc<dyn Resolver>) -> Self {
        Clients { resolver, clients: Mutex::default() }
    }

    /// The client for these rules. It follows no redirects and knows no proxies: both would go round the check.
    pub(super) fn get(&self, guard: &Guard) -> Result<Client, reqwest::Error> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(guard) {
            return Ok(client.clone());
        }
        let resolver = GuardedResolver { resolver: self.resolver.clone(), guard: guard.clone() };
        let client = Client::builder()
            .dns_resolver(Arc::new(resolver))
            .redirect(Policy::none())
            .no_proxy()
            .referer(false)
            .user_agent(concat!("segno/", env!("CARGO_PKG_VERSION")))
            .build()?;
        if clients.len() >= MAX_CLIENTS {
            clients.clear();
        }
        clients.insert(guard.clone(), client.clone());
        Ok(client)
    }
}

struct GuardedResolver {
    resolver: Arc<dyn Resolver>,
    guard: Guard,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (resolver, guard) = (self.resolver.clone(), self.guard.clone());
        Box::pin(async move {
            let addresses = resolver.resolve(name.as_str()).await?;
            guard.check_addresses(name.as_str(), &addresses)?;
            let addresses = addresses.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

//! A pool: how its calls reach its workers, which functions it has, and how fast it may be called.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::functions::limits::{MAX_POOL_CALLS_PER_SECOND, MAX_POOL_FUNCTIONS};
use crate::functions::{CallLimits, CallName, FunctionError, HumanDuration};

/// How the calls of a pool reach what runs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// Workers fetch them by the workers' protocol.
    #[default]
    Queue,
    /// Nodes run the functions of the catalogue that have these names in lowercase.
    Local,
    /// Workers get them from a message bus.
    Bus,
}

impl Transport {
    /// The name that declarations use.
    pub fn as_str(self) -> &'static str {
        match self {
            Transport::Queue => "queue",
            Transport::Local => "local",
            Transport::Bus => "bus",
        }
    }
}

/// A pool of workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// How calls reach its workers.
    #[serde(default)]
    pub transport: Transport,
    /// Which functions may be called through it.
    pub functions: AllowList,
    /// At most so many calls are handed out per second, over all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_per_second: Option<f64>,
    /// Longest time of one attempt of calls that do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<HumanDuration>,
}

impl Pool {
    /// A pool whose workers fetch calls of these functions.
    pub fn new(functions: AllowList) -> Self {
        Pool { transport: Transport::Queue, functions, calls_per_second: None, timeout: None }
    }

    /// Checks what types cannot.
    ///
    /// # Errors
    /// `invalid-pool` with the setting, what is wrong with it and what to write instead.
    pub fn check(&self) -> Result<(), FunctionError> {
        let wrong = |field: &str, problem: String| Err(FunctionError::invalid_pool(field, problem));
        match self.functions.entries().len() {
            0 => return wrong("functions", "is empty; name functions, or write [\"*\"] for all".to_owned()),
            count if count > MAX_POOL_FUNCTIONS => {
                return wrong("functions", format!("has {count} entries, the limit is {MAX_POOL_FUNCTIONS}"));
            }
            _ => {}
        }
        if let Some(rate) = self.calls_per_second {
            if !(rate > 0.0 && rate <= MAX_POOL_CALLS_PER_SECOND) {
                let problem = format!(
                    "{rate} is out of range; write more than 0 and up to {MAX_POOL_CALLS_PER_SECOND}"
                );
                return wrong("calls_per_second", problem);
            }
            if self.transport == Transport::Local {
                let problem = "limits what workers fetch; leave it out of a local pool".to_owned();
                return wrong("calls_per_second", problem);
            }
        }
        let limits = CallLimits { timeout: self.timeout, ..CallLimits::default() };
        limits.check_values().map_err(|(field, problem)| FunctionError::invalid_pool(field, problem))
    }
}

/// Which functions may be called: names, beginnings of names (`Set-*`), or all (`*`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowList {
    entries: Vec<Entry>,
    /// The entries that are names: each fetch of a worker asks for all of its functions.
    names: HashSet<CallName>,
}

/// An entry of an allow-list.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Name(CallName),
    /// Names that begin with this.
    Beginning(String),
}

impl Entry {
    fn new(text: &str) -> Result<Self, FunctionError> {
        match text.strip_suffix('*') {
            Some("") => Ok(Entry::Beginning(String::new())),
            // What names begin with is a name itself, as far as letters go.
            Some(beginning) => CallName::new(beginning).map(|name| Entry::Beginning(name.to_string())),
            None => CallName::new(text).map(Entry::Name),
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Name(name) => name.fmt(f),
            Entry::Beginning(beginning) => write!(f, "{beginning}*"),
        }
    }
}

impl AllowList {
    /// Reads entries.
    ///
    /// # Errors
    /// `invalid-function-name` with the first entry that is none.
    pub fn new(entries: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, FunctionError> {
        let mut list = AllowList::default();
        for entry in entries {
            list.push(Entry::new(entry.as_ref())?);
        }
        Ok(list)
    }

    /// These functions and no other.
    pub fn of(functions: impl IntoIterator<Item = CallName>) -> Self {
        let mut list = AllowList::default();
        functions.into_iter().for_each(|function| list.push(Entry::Name(function)));
        list
    }

    /// Whether a function may be called.
    pub fn allows(&self, function: &CallName) -> bool {
        let begins = |entry: &Entry| match entry {
            Entry::Name(_) => false,
            Entry::Beginning(beginning) => function.as_str().starts_with(beginning.as_str()),
        };
        self.names.contains(function) || self.entries.iter().any(begins)
    }

    /// The entries, as they are written.
    pub fn entries(&self) -> Vec<String> {
        self.entries.iter().map(ToString::to_string).collect()
    }

    /// Adds functions that it does not have; whether there were any.
    pub(super) fn extend(&mut self, functions: &[CallName]) -> bool {
        let before = self.entries.len();
        for function in functions {
            if !self.allows(function) {
                self.push(Entry::Name(function.clone()));
            }
        }
        self.entries.len() > before
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    fn push(&mut self, entry: Entry) {
        if let Entry::Name(name) = &entry {
            self.names.insert(name.clone());
        }
        self.entries.push(entry);
    }
}

impl Serialize for AllowList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.entries())
    }
}

impl<'de> Deserialize<'de> for AllowList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        AllowList::new(Vec::<String>::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> CallName {
        CallName::new(text).unwrap()
    }

    #[test]
    fn an_allow_list_has_names_and_beginnings() {
        let list = AllowList::new(["New-EntraUser", "Set-*"]).unwrap();
        for (function, is_allowed) in [
            ("New-EntraUser", true),
            ("new-entrauser", false),
            ("New-EntraUser2", false),
            ("Set-Mailbox", true),
            ("set-Mailbox", false),
            ("Remove-User", false),
        ] {
            assert_eq!(list.allows(&name(function)), is_allowed, "{function}");
        }
        assert!(AllowList::new(["*"]).unwrap().allows(&name("x")));
        assert!(!AllowList::default().allows(&name("x")));
        for bad in ["", "a b", "-x", "**", "a*b", "Grüße*"] {
            assert!(AllowList::new([bad]).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_pool_is_read_and_written_as_it_is_declared() {
        let text = r#"{"transport":"queue","functions":["New-EntraUser","Set-*"],"calls_per_second":2.5,"timeout":"30s"}"#;
        let pool: Pool = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&pool).unwrap(), text);
        pool.check().unwrap();
        let least: Pool = serde_json::from_str(r#"{"functions":["*"]}"#).unwrap();
        assert_eq!(least, Pool::new(AllowList::new(["*"]).unwrap()));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, words) in [
            (r#"{"functions":[]}"#, "functions: is empty"),
            (r#"{"functions":["*"],"calls_per_second":0}"#, "calls_per_second: 0 is out of range"),
            (r#"{"functions":["*"],"calls_per_second":1e9}"#, "calls_per_second: 1000000000 is out of range"),
            (
                r#"{"functions":["*"],"transport":"local","calls_per_second":1}"#,
                "leave it out of a local pool",
            ),
            (r#"{"functions":["*"],"timeout":"0s"}"#, "timeout: nothing is done in no time"),
        ] {
            let error = serde_json::from_str::<Pool>(text).unwrap().check().unwrap_err();
            assert_eq!(error.code(), "invalid-pool");
            assert!(error.to_string().contains(words), "{error}");
        }
        for (text, words) in [
            (r#"{"functions":["a b"]}"#, "cannot be a name of a function in a pool"),
            (r#"{"functions":["*"],"transport":"pigeon"}"#, "pigeon"),
            (r#"{"functions":["*"],"speed":1}"#, "speed"),
            ("{}", "functions"),
        ] {
            let error = serde_json::from_str::<Pool>(text).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}

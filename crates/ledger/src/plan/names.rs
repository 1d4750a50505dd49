//! Which names are allowed.

use segno_actions::document::shown;

use super::limits::MAX_NAME_BYTES;

/// What a name is for; decides which characters it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// A DAG. It stands in ids and paths.
    Dag,
    /// A task. It stands in ids of dispatches and timers.
    Task,
    /// A parameter. It stands in templates.
    Parameter,
    /// An asset.
    Asset,
    /// A concurrency pool.
    Pool,
    /// A sensor.
    Sensor,
    /// A partition definition. It stands in templates.
    Partitions,
}

impl NameKind {
    /// The characters that names of this kind may have, for errors and the guide.
    pub fn allowed(self) -> &'static str {
        match self {
            NameKind::Parameter | NameKind::Partitions => {
                "letters, digits, '_' and '-', beginning with a letter or '_'"
            }
            NameKind::Asset => "letters, digits, '.', '_', '-' and '/', beginning with a letter or digit",
            _ => "letters, digits, '.', '_' and '-', beginning with a letter or digit",
        }
    }

    fn allows(self, name: &str) -> bool {
        let first = |c: char| match self {
            NameKind::Parameter | NameKind::Partitions => c.is_ascii_alphabetic() || c == '_',
            _ => c.is_ascii_alphanumeric(),
        };
        let later = |c: char| match c {
            '_' | '-' => true,
            '.' => !matches!(self, NameKind::Parameter | NameKind::Partitions),
            '/' => self == NameKind::Asset,
            c => c.is_ascii_alphanumeric(),
        };
        name.starts_with(first) && name.chars().all(later)
    }

    /// Checks a name.
    ///
    /// # Errors
    /// What is wrong and what is allowed.
    pub fn check(self, name: &str) -> Result<(), String> {
        if name.len() > MAX_NAME_BYTES {
            return Err(format!("the name has {} bytes, the limit is {MAX_NAME_BYTES}", name.len()));
        }
        match self.allows(name) {
            true => Ok(()),
            false => Err(format!("{:?} is not allowed; use {}", shown(name), self.allowed())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_characters() {
        let longer = "x".repeat(MAX_NAME_BYTES + 1);
        for (kind, good, bad) in [
            (NameKind::Dag, &["daily", "Daily_2.0-b"][..], &["", "-a", "a b", "a/b", "ä", &longer][..]),
            (NameKind::Task, &["extract", "7zip", "a.b"], &["load[0]", "a:b", "_a"]),
            (NameKind::Parameter, &["day", "_x", "max-rows"], &["a.b", "7", ""]),
            (NameKind::Asset, &["raw/sales.eu"], &["/raw", "raw sales"]),
            (NameKind::Partitions, &["day_region"], &["day.region"]),
        ] {
            good.iter().for_each(|name| assert_eq!(kind.check(name), Ok(()), "{kind:?} {name}"));
            bad.iter().for_each(|name| assert!(kind.check(name).is_err(), "{kind:?} {name}"));
        }
    }
}

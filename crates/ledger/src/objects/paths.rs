//! Where the objects of a scope lie. All paths begin with tenant and workspace, which are slugs
//! without a slash.

use object_store::path::Path;
use segno_actions::functions::Scope;

use crate::ids::Ulid;

/// The paths of one scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    scope: Scope,
}

impl Paths {
    /// The paths of a scope: `{tenant}/{workspace}/…`; the workspace is the namespace.
    pub fn new(scope: Scope) -> Self {
        Paths { scope }
    }

    /// The scope.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    fn below(&self, rest: &str) -> Path {
        Path::from(format!("{}/{}/{rest}", self.scope.tenant, self.scope.namespace))
    }

    /// The folder of everything that the scope has.
    pub fn root(&self) -> Path {
        Path::from(format!("{}/{}", self.scope.tenant, self.scope.namespace))
    }

    /// The folder of batches that are not joined yet.
    pub fn log(&self) -> Path {
        self.below("ledger/orchestration")
    }

    /// The batch whose first event has this id.
    pub fn batch(&self, first: Ulid) -> Path {
        self.below(&format!("ledger/orchestration/{first}.json"))
    }

    /// The folder of joined batches.
    pub fn segments(&self) -> Path {
        self.below("ledger/orchestration_segments")
    }

    /// A file of joined batches.
    pub fn segment(&self, name: &str) -> Path {
        self.below(&format!("ledger/orchestration_segments/{name}"))
    }

    /// The folder of batches that cannot be read.
    pub fn quarantine(&self, name: &str) -> Path {
        self.below(&format!("ledger/orchestration_quarantine/{name}"))
    }

    /// The folder of manifests.
    pub fn manifests(&self) -> Path {
        self.below("manifests/orchestration")
    }

    /// The manifest with this number.
    pub fn manifest(&self, number: u64) -> Path {
        self.below(&format!("manifests/orchestration/{number:020}.json"))
    }

    /// The folder of parts of manifests.
    pub fn parts(&self) -> Path {
        self.below("manifests/orchestration_parts")
    }

    /// A part of manifests.
    pub fn part(&self, name: &str) -> Path {
        self.below(&format!("manifests/orchestration_parts/{name}"))
    }

    /// The copy of the newest manifest, for readers that want one fixed name.
    pub fn pointer(&self) -> Path {
        self.below("manifests/orchestration.manifest.json")
    }

    /// The folder of everything folded.
    pub fn state(&self) -> Path {
        self.below("state/orchestration")
    }

    /// A file of everything folded, by its path below that folder.
    pub fn state_file(&self, relative: &str) -> Path {
        self.below(&format!("state/orchestration/{relative}"))
    }

    /// An object or folder of the archive, by its path below that folder.
    pub fn archived(&self, relative: &str) -> Path {
        self.below(&format!("archive/{relative}"))
    }

    /// The name of an object in its folder.
    pub fn name_of(path: &Path) -> &str {
        path.filename().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_contract() {
        let paths = Paths::new(Scope::new("prod", "acme").unwrap());
        let first = Ulid::at(1, 2);
        for (path, expected) in [
            (paths.batch(first), format!("acme/prod/ledger/orchestration/{first}.json")),
            (paths.manifest(7), "acme/prod/manifests/orchestration/00000000000000000007.json".to_owned()),
            (paths.pointer(), "acme/prod/manifests/orchestration.manifest.json".to_owned()),
            (paths.state_file("runs/x.parquet"), "acme/prod/state/orchestration/runs/x.parquet".to_owned()),
        ] {
            assert_eq!(path.as_ref(), expected);
        }
        assert!(!paths.segment("x").prefix_matches(&paths.log()), "listing the log does not list segments");
        assert!(!paths.pointer().prefix_matches(&paths.manifests()));
    }
}

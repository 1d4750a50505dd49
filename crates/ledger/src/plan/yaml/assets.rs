//! `assets`: what tasks make, and what it is made of.

use std::collections::BTreeMap;

use segno_actions::document::{Field, PartReader, Problem, Tree, shown};

use super::keys::{ASSET, UPSTREAM};
use super::reader::Reader;
use crate::plan::definition::{Asset, Dag, PartitionMapping, Partitions, UNPARTITIONED, UpstreamAsset};
use crate::plan::graph::{Cycle, Graph};
use crate::plan::limits::{MAX_ASSETS, MAX_NAME_BYTES, MAX_UPSTREAM_ASSETS, MIN_FRESHNESS_SEC};
use crate::plan::names::NameKind;

/// What `mapping` can be.
const MAPPINGS: [(&str, PartitionMapping); 3] =
    [("same", PartitionMapping::Same), ("window", PartitionMapping::Window), ("all", PartitionMapping::All)];

/// An item of `upstream` whose mapping may not be written.
type ReadUpstream<'n> = (Field<'n>, String, Option<PartitionMapping>);

impl Reader<'_> {
    /// Reads all assets.
    pub fn assets(&mut self, field: &Field<'_>, dag: &Dag) -> BTreeMap<String, Asset> {
        let Some(entries) = self.map(field) else { return BTreeMap::new() };
        if entries.len() > MAX_ASSETS {
            let problem = format!("there are {} assets, the limit is {MAX_ASSETS}", entries.len());
            self.push(field.error(problem));
        }
        let mut assets = BTreeMap::new();
        let mut upstream = Vec::new();
        for entry in entries.iter().take(MAX_ASSETS) {
            let value = field.value(entry);
            if let Err(problem) = NameKind::Asset.check(&entry.key) {
                self.push(value.error(problem));
            }
            let (asset, read) = self.asset(value, dag).unwrap_or_default();
            upstream.push((entry.key.clone(), read));
            assets.insert(entry.key.clone(), asset);
        }
        for (key, read) in upstream {
            let found: Vec<UpstreamAsset> =
                read.into_iter().filter_map(|read| self.upstream_asset(&key, read, &assets, dag)).collect();
            if let Some(asset) = assets.get_mut(&key) {
                asset.upstream = found;
            }
        }
        self.check_asset_cycle(field, &assets);
        assets
    }

    fn asset<'n>(&mut self, field: Field<'n>, dag: &Dag) -> Option<(Asset, Vec<ReadUpstream<'n>>)> {
        if field.node.tree == Tree::Null {
            return Some((Asset { partitions: dag.partitioned_by.clone(), ..Asset::default() }, Vec::new()));
        }
        let fields = self.fields(field, &ASSET)?;
        let partitions = match fields.get("partitions") {
            Some(Field { node, .. }) if node.tree == Tree::Text(UNPARTITIONED.to_owned()) => None,
            Some(field) => self.known_partitions(&field),
            None => dag.partitioned_by.clone(),
        };
        let asset = Asset {
            description: fields.get("description").and_then(|field| self.free_text(&field)),
            partitions,
            freshness: fields.get("freshness").and_then(|field| self.duration(&field, MIN_FRESHNESS_SEC)),
            upstream: Vec::new(),
        };
        let mut upstream = Vec::new();
        if let Some(field) = fields.get("upstream") {
            for item in self.list(&field, MAX_UPSTREAM_ASSETS) {
                upstream.extend(self.read_upstream(item));
            }
        }
        Some((asset, upstream))
    }

    fn read_upstream<'n>(&mut self, field: Field<'n>) -> Option<ReadUpstream<'n>> {
        if !matches!(field.node.tree, Tree::Map(_)) {
            let key = self.text(&field, MAX_NAME_BYTES)?;
            return Some((field, key, None));
        }
        let fields = self.fields(field.clone(), &UPSTREAM)?;
        let key =
            self.required(&fields, "asset", "raw.sales").and_then(|field| self.text(&field, MAX_NAME_BYTES));
        let mapping = match fields.get("mapping") {
            Some(field) => Some(self.choice(&field, &MAPPINGS)?),
            None => None,
        };
        Some((field, key?, mapping))
    }

    fn upstream_asset(
        &mut self,
        key: &str,
        (field, upstream, mapping): ReadUpstream<'_>,
        assets: &BTreeMap<String, Asset>,
        dag: &Dag,
    ) -> Option<UpstreamAsset> {
        let Some(other) = assets.get(&upstream) else {
            let problem = field.error(format!("there is no asset {:?}", shown(&upstream)));
            let advice = self.suggestion(&upstream, assets.keys().map(String::as_str));
            self.push(problem.advice(advice.unwrap_or_else(|| "add it under assets".to_owned())));
            return None;
        };
        let own = assets.get(key)?;
        let are_windows = [own, other].iter().all(|asset| is_windows(asset, dag));
        let is_same = own.partitions == other.partitions;
        let mapping = mapping.unwrap_or(match (is_same, are_windows) {
            (true, _) => PartitionMapping::Same,
            (_, true) => PartitionMapping::Window,
            _ => PartitionMapping::All,
        });
        let problem = match mapping {
            PartitionMapping::Same if !is_same => "same needs assets with the same partitions",
            PartitionMapping::Window if !are_windows => {
                "window needs two assets whose partitions are windows of time"
            }
            _ => return Some(UpstreamAsset { asset: upstream, mapping }),
        };
        let problem = field.error(format!("the mapping {problem}"));
        self.push(problem.advice("write mapping: all, or change the partitions of one of them"));
        None
    }

    fn check_asset_cycle(&mut self, field: &Field<'_>, assets: &BTreeMap<String, Asset>) {
        let keys: Vec<&String> = assets.keys().collect();
        let index = |upstream: &UpstreamAsset| keys.binary_search(&&upstream.asset).ok();
        let upstream =
            assets.values().map(|asset| asset.upstream.iter().filter_map(index).collect()).collect();
        if let Err(Cycle(path)) = Graph::new(upstream) {
            let path: Vec<&str> =
                path.iter().chain(path.first()).map(|&asset| keys[asset].as_str()).collect();
            let problem = format!("assets are made of each other: {}", path.join(" ← "));
            self.push(
                Problem::error(field.at(), field.path.clone(), problem).advice("remove one upstream asset"),
            );
        }
    }
}

fn is_windows(asset: &Asset, dag: &Dag) -> bool {
    let definition = asset.partitions.as_ref().and_then(|name| dag.partitions.get(name));
    matches!(definition, Some(Partitions::Windows { .. }))
}

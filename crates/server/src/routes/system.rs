//! The node and its store.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use segno_api::system::{Counts, NodeList, Queues, Setting, SettingList, StoreFigures, System};

use crate::app::{self, App};
use crate::problem::Refusal;
use crate::settings;

/// The node that answers, and counts over the whole store.
#[utoipa::path(get, path = "/v1/system", tag = "system", responses(
    (status = 200, body = System),
))]
pub async fn system(State(app): State<App>, stored: app::System) -> Result<Json<System>, Refusal> {
    let counts = stored.counts().await?;
    let mut orchestrations = BTreeMap::<String, Vec<String>>::new();
    for (name, version) in &app.orchestrations {
        orchestrations.entry(name.clone()).or_default().push(version.clone());
    }
    Ok(Json(System {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        node: app.node.clone(),
        roles: app.settings.server.roles.iter().map(|role| role.as_str().to_owned()).collect(),
        store: stored.store_name().to_owned(),
        orchestrations,
        counts: Counts {
            instances: counts.total_instances,
            pending: counts.pending_instances,
            running: counts.running_instances,
            paused: counts.paused_instances,
            completed: counts.completed_instances,
            failed: counts.failed_instances,
            cancelled: counts.cancelled_instances,
            executions: counts.total_executions,
            events: counts.total_events,
        },
    }))
}

/// Lengths of the queues.
#[utoipa::path(get, path = "/v1/queues", tag = "system", responses(
    (status = 200, body = Queues),
))]
pub async fn queues(stored: app::System) -> Result<Json<Queues>, Refusal> {
    let depths = stored.queue_depths().await?;
    Ok(Json(Queues {
        orchestrator: depths.orchestrator_queue,
        worker: depths.worker_queue,
        delayed: depths.delayed(),
        orchestrator_delayed: depths.orchestrator_delayed,
        worker_delayed: depths.worker_delayed,
        locked: depths.locked,
    }))
}

/// The nodes that were heard of in the last hour: those that work, those that have stopped, and those that are lost.
#[utoipa::path(get, path = "/v1/nodes", tag = "system", responses(
    (status = 200, body = NodeList),
))]
pub async fn nodes(stored: app::System) -> Result<Json<NodeList>, Refusal> {
    Ok(Json(NodeList { nodes: stored.nodes().await? }))
}

/// What the store takes on its disk, and what is left there.
#[utoipa::path(get, path = "/v1/store", tag = "system", responses(
    (status = 200, body = StoreFigures),
))]
pub async fn store(stored: app::System) -> Result<Json<StoreFigures>, Refusal> {
    Ok(Json(stored.figures().await?))
}

/// The settings of the node that answers, each with where it comes from. Secrets are left out.
#[utoipa::path(get, path = "/v1/settings", tag = "system", responses(
    (status = 200, body = SettingList),
))]
pub async fn settings(State(app): State<App>) -> Json<SettingList> {
    let lines = app.setting_lines.iter().map(|(setting, value, origin)| Setting {
        setting: setting.clone(),
        value: settings::redacted(setting, value),
        origin: origin.to_string(),
    });
    Json(SettingList { node: app.node.clone(), settings: lines.collect() })
}

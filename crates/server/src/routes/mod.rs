//! The routes. Each is in a group, and every group but the public one has a guard with what it needs.

mod actions;
mod archive;
mod assets;
mod audit;
mod automation;
mod backfills;
mod batch_delete;
mod batch_report;
mod batches;
mod bus;
mod callbacks;
mod dags;
mod dead_letters;
mod events;
mod exchange;
mod functions;
mod health;
mod hooks;
mod instances;
mod invocations;
mod keys;
mod orchestrations;
mod page;
pub(crate) mod paging;
mod partial;
mod pools;
mod problems;
mod recurring;
mod run_tasks;
mod runbook_delete;
mod runbooks;
mod runs;
mod saved;
mod search;
mod sessions;
mod sql;
mod sse;
mod stats;
mod system;
mod versions;
mod work;
mod workers;

use std::time::Duration;

use axum::Router;
use axum::body::HttpBody;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use segno_api::problem::PROBLEM_JSON;
use utoipa::openapi::path::Operation as DocumentedOperation;
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, ResponseBuilder};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use utoipa_swagger_ui::SwaggerUi;

use crate::access::{self, Need};
use crate::app::App;
use crate::known_parameters::{self, KnownParameters};
use crate::operation::{self, Kind, Operation};
use crate::problem::{Code, Refusal};
use crate::ui::Ui;
use crate::{audit as audit_log, body_scope, detached, http_metrics, idempotency, request_id};

pub use hooks::ingress::HookRates;
pub use sessions::SignInRates;

/// Name of the security scheme in the document.
const BEARER: &str = "bearer";

/// The same, of the cookie of a session.
const COOKIE: &str = "session";

/// What of a group is written into the audit log.
enum Audit {
    /// Every request that changes something.
    EveryChange,
    /// Every request that changes something; its body may say in which namespace and tenant.
    EveryChangeAsItsBodySays,
    /// Every request that changes something, in the first tenant that the caller's key is for.
    EveryChangeAtHome,
    /// Nothing: `work.rs` says why; queries and checks change nothing, and an editor sends them with every pause of the fingers.
    Nothing,
    /// Nothing; its body may say in which namespace and tenant.
    NothingAsItsBodySays,
}

/// Everything that the server answers, and the document that describes it.
pub fn router(app: &App) -> (Router, OpenApi) {
    let read = OpenApiRouter::new()
        .routes(routes!(instances::list::list))
        .routes(routes!(instances::read::get))
        .routes(routes!(instances::read::history))
        .routes(routes!(instances::read::executions))
        .routes(routes!(instances::read::tree))
        .routes(routes!(instances::read::status))
        .routes(routes!(instances::explain::explain))
        .routes(routes!(instances::stream::events))
        .routes(routes!(orchestrations::list))
        .routes(routes!(orchestrations::get))
        .routes(routes!(events::events))
        .routes(routes!(archive::get))
        .routes(routes!(instances::logs::logs))
        .routes(routes!(problems::get))
        .routes(routes!(stats::get))
        .routes(routes!(instances::counts::counts))
        .routes(routes!(instances::timers::timers))
        .routes(routes!(search::search))
        .routes(routes!(saved::list))
        .routes(routes!(saved::get))
        .routes(routes!(functions::list))
        .routes(routes!(functions::get))
        .routes(routes!(hooks::declare::list))
        .routes(routes!(hooks::declare::get))
        .routes(routes!(hooks::payloads::list))
        .routes(routes!(hooks::events::list))
        .routes(routes!(hooks::events::list_of_route))
        .routes(routes!(workers::list))
        .routes(routes!(dead_letters::list))
        .routes(routes!(dead_letters::get))
        .routes(routes!(bus::list))
        .routes(routes!(bus::get))
        .routes(routes!(bus::messages))
        .routes(routes!(bus::dead_letters))
        .routes(routes!(pools::list))
        .routes(routes!(pools::get))
        .routes(routes!(runbooks::list))
        .routes(routes!(runbooks::get))
        .routes(routes!(runbooks::versions))
        .routes(routes!(runbooks::version))
        .routes(routes!(automation::get))
        .routes(routes!(dags::list))
        .routes(routes!(dags::get))
        .routes(routes!(dags::versions))
        .routes(routes!(dags::version))
        .routes(routes!(dags::partitions))
        .routes(routes!(assets::list))
        .routes(routes!(assets::get))
        .routes(routes!(assets::lineage))
        .routes(routes!(runs::list))
        .routes(routes!(runs::get))
        .routes(routes!(run_tasks::list))
        .routes(routes!(run_tasks::get))
        .routes(routes!(run_tasks::output))
        .routes(routes!(run_tasks::logs))
        .routes(routes!(backfills::list))
        .routes(routes!(backfills::get))
        .routes(routes!(backfills::chunks))
        .routes(routes!(batches::list))
        .routes(routes!(batches::get))
        .routes(routes!(batches::explain))
        .routes(routes!(batch_report::report))
        .routes(routes!(batches::members))
        .routes(routes!(batches::member))
        .routes(routes!(batches::get_request))
        .routes(routes!(actions::list))
        .routes(routes!(actions::get))
        .routes(routes!(recurring::manage::list))
        .routes(routes!(recurring::manage::get))
        .routes(routes!(recurring::inspect::history))
        .routes(routes!(recurring::inspect::explain))
        .routes(routes!(recurring::inspect::preview));
    let query =
        OpenApiRouter::new().routes(routes!(sql::run::run)).routes(routes!(sql::catalogue::catalogue));
    let operate = OpenApiRouter::new()
        .routes(routes!(instances::start::start))
        .routes(routes!(instances::start::restart))
        .routes(routes!(instances::steer::raise))
        .routes(routes!(instances::steer::enqueue))
        .routes(routes!(instances::steer::cancel))
        .routes(routes!(instances::steer::pause))
        .routes(routes!(instances::steer::resume))
        .routes(routes!(instances::steer::retry))
        .routes(routes!(instances::steer::delete))
        .routes(routes!(instances::bulk::bulk))
        .routes(routes!(archive::erase_instance))
        .routes(routes!(invocations::invoke))
        .routes(routes!(dead_letters::resubmit))
        .routes(routes!(dead_letters::discard))
        .routes(routes!(bus::resubmit))
        .routes(routes!(bus::discard))
        .routes(routes!(functions::put, functions::delete))
        .routes(routes!(saved::put, saved::delete))
        .routes(routes!(pools::pause))
        .routes(routes!(pools::resume))
        .routes(routes!(pools::delete))
        .routes(routes!(hooks::declare::put, hooks::declare::patch, hooks::declare::delete))
        .routes(routes!(hooks::payloads::get, hooks::payloads::delete))
        .routes(routes!(hooks::payloads::replay))
        .routes(routes!(hooks::test::test))
        .routes(routes!(dags::delete))
        .routes(routes!(dags::pause))
        .routes(routes!(dags::resume))
        .routes(routes!(runs::start))
        .routes(routes!(runs::rerun))
        .routes(routes!(runs::cancel))
        .routes(routes!(runs::pause))
        .routes(routes!(runs::resume))
        .routes(routes!(runs::clear))
        .routes(routes!(run_tasks::mark))
        .routes(routes!(backfills::create))
        .routes(routes!(backfills::pause))
        .routes(routes!(backfills::resume))
        .routes(routes!(backfills::cancel))
        .routes(routes!(backfills::retry))
        .routes(routes!(automation::set))
        .routes(routes!(automation::approve_removal))
        .routes(routes!(automation::reject_removal))
        .routes(routes!(batches::remove_members))
        .routes(routes!(batches::request))
        .routes(routes!(batch_delete::delete))
        .routes(routes!(runbook_delete::delete))
        .routes(routes!(runbook_delete::delete_version));
    let publish =
        OpenApiRouter::new().routes(routes!(runbooks::publish)).routes(routes!(automation::preview));
    let check = OpenApiRouter::new().routes(routes!(runbooks::plan));
    let preview = OpenApiRouter::new().routes(routes!(recurring::inspect::preview_unsaved));
    let publish_dag = OpenApiRouter::new().routes(routes!(dags::publish));
    let with_members =
        OpenApiRouter::new().routes(routes!(batches::create)).routes(routes!(batches::put_members));
    let act = OpenApiRouter::new()
        .routes(routes!(actions::create))
        .routes(routes!(actions::patch, actions::delete))
        .routes(routes!(actions::cancel))
        .routes(routes!(actions::run))
        .routes(routes!(recurring::manage::create))
        .routes(routes!(recurring::manage::update, recurring::manage::delete))
        .routes(routes!(recurring::manage::pause))
        .routes(routes!(recurring::manage::resume))
        .routes(routes!(recurring::manage::run))
        .routes(routes!(recurring::inspect::backfill));
    let work = OpenApiRouter::new()
        .routes(routes!(work::fetch))
        .routes(routes!(work::heartbeat))
        .routes(routes!(work::complete))
        .routes(routes!(work::fail))
        .routes(routes!(work::release))
        .routes(routes!(exchange::exchange))
        .routes(routes!(bus::receive))
        .routes(routes!(bus::settle))
        .routes(routes!(bus::renew));
    let messages = OpenApiRouter::new().routes(routes!(bus::send));
    let system = OpenApiRouter::new()
        .routes(routes!(system::system))
        .routes(routes!(system::queues))
        .routes(routes!(system::nodes))
        .routes(routes!(system::store))
        .routes(routes!(health::metrics));
    let admin = OpenApiRouter::new()
        .routes(routes!(keys::list, keys::create))
        .routes(routes!(keys::revoke))
        .routes(routes!(audit::list))
        .routes(routes!(system::settings))
        .routes(routes!(archive::erase));
    let known = OpenApiRouter::new()
        .routes(routes!(sessions::me))
        .routes(routes!(sessions::list))
        .routes(routes!(sessions::end));
    let sign_in = OpenApiRouter::new().routes(routes!(sessions::create));
    let parameters = KnownParameters::of(sign_in.get_openapi());
    let sign_in = sign_in
        .route_layer(from_fn_with_state(parameters, known_parameters::layer))
        .route_layer(DefaultBodyLimit::max(sessions::MAX_SIGN_IN_BYTES));
    let callbacks = OpenApiRouter::new()
        .routes(routes!(callbacks::started))
        .routes(routes!(callbacks::heartbeat))
        .routes(routes!(callbacks::completed));
    let parameters = KnownParameters::of(callbacks.get_openapi());
    let callbacks = callbacks
        .route_layer(from_fn_with_state(parameters, known_parameters::layer))
        .route_layer(DefaultBodyLimit::max(callbacks::MAX_CALLBACK_BODY_BYTES));
    let public = OpenApiRouter::new()
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .merge(refusing(OpenApiRouter::new().routes(routes!(hooks::ingress::receive))))
        .merge(refusing(callbacks))
        .merge(refusing(sign_in));

    let body = app.settings.server.max_body_bytes;
    let guarded = [
        (Need::Read, Audit::EveryChange, body, read),
        (Need::Read, Audit::Nothing, body, query),
        (Need::Operate, Audit::EveryChange, body, operate),
        (Need::Operate, Audit::EveryChange, body.max(runbooks::MAX_RUNBOOK_BODY_BYTES), publish),
        (Need::Operate, Audit::EveryChange, body.max(dags::MAX_DAG_BODY_BYTES), publish_dag),
        (Need::Operate, Audit::EveryChange, body.max(batches::MAX_MEMBERS_BODY_BYTES), with_members),
        (Need::Operate, Audit::EveryChangeAsItsBodySays, body, act),
        (Need::Operate, Audit::NothingAsItsBodySays, body, preview),
        (Need::Operate, Audit::Nothing, body.max(runbooks::MAX_RUNBOOK_BODY_BYTES), check),
        (Need::Work, Audit::Nothing, body, work),
        (Need::Messages, Audit::EveryChange, body, messages),
        (Need::System, Audit::EveryChange, body, system),
        (Need::Admin, Audit::EveryChange, body, admin),
        (Need::Known, Audit::EveryChangeAtHome, body, known),
    ];
    let mut all = OpenApiRouter::with_openapi(description()).merge(public);
    for (need, audit, max_body_bytes, group) in guarded {
        let parameters = KnownParameters::of(group.get_openapi());
        let group = group
            .route_layer(from_fn(detached::handle))
            .route_layer(from_fn_with_state(app.clone(), idempotency::layer))
            .route_layer(from_fn_with_state(parameters, known_parameters::layer));
        let group = match audit {
            Audit::EveryChange => group.route_layer(from_fn_with_state(app.clone(), audit_log::layer)),
            Audit::EveryChangeAsItsBodySays => group
                .route_layer(from_fn_with_state(app.clone(), audit_log::layer))
                .route_layer(from_fn_with_state(app.clone(), body_scope::layer)),
            Audit::EveryChangeAtHome => group
                .route_layer(from_fn_with_state(app.clone(), audit_log::layer))
                .route_layer(from_fn(sessions::at_home)),
            Audit::Nothing => group,
            Audit::NothingAsItsBodySays => {
                group.route_layer(from_fn_with_state(app.clone(), body_scope::layer))
            }
        };
        let group = group
            .route_layer(from_fn_with_state((app.clone(), need), detached::layer))
            .route_layer(from_fn_with_state((app.clone(), need), instances::awaited_end::layer));
        let group = group.route_layer(from_fn_with_state((app.clone(), need), access::guard));
        let group = group.route_layer(DefaultBodyLimit::max(max_body_bytes));
        let group = refusing(group);
        all = all.merge(if app.needs_keys() { needing_a_key(group) } else { group });
    }
    let (router, document) = all.split_for_parts();
    // Made once: it is large, and may be read without a key.
    let json = Bytes::from(document.to_json().expect("the document is plain data"));
    let page = SwaggerUi::new("/docs").config(utoipa_swagger_ui::Config::from("/openapi.json"));
    let ui = Ui::of(&app.settings.server);
    let router = router
        .merge(page)
        .route("/openapi.json", get(async move || ([(header::CONTENT_TYPE, "application/json")], json)))
        .fallback(async move |request: Request| match ui.and_then(|ui| ui.answer(&request)) {
            Some(answer) => answer,
            None => nothing_here(&request).into_response(),
        })
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(body))
        .layer(from_fn_with_state(app.clone(), access::same_origin_only))
        .layer(from_fn_with_state(app.clone(), in_time))
        .layer(from_fn_with_state(app.clone(), request_id::layer))
        .layer(from_fn_with_state(app.clone(), http_metrics::layer))
        .with_state(app.clone());
    (router, document)
}

fn description() -> OpenApi {
    let mut document = OpenApi::default();
    document.info.title = "Segno".to_owned();
    document.info.version = env!("CARGO_PKG_VERSION").to_owned();
    document.info.description = Some(include_str!("api.md").to_owned());
    let scheme =
        HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("segno_<id>_<secret>").build();
    let components = document.components.get_or_insert_default();
    components.add_security_scheme(BEARER, SecurityScheme::Http(scheme));
    let cookie = ApiKeyValue::new(sessions::COOKIE);
    components.add_security_scheme(COOKIE, SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
    document
}

/// Says in the document that the routes of a group may answer with a problem.
fn refusing(mut group: OpenApiRouter<App>) -> OpenApiRouter<App> {
    let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    let refused = ResponseBuilder::new()
        .description("What is wrong, and what to do")
        .content(PROBLEM_JSON, problem)
        .build();
    for operation in operations(&mut group) {
        for statuses in ["4XX", "5XX"] {
            operation.responses.responses.insert(statuses.to_owned(), refused.clone().into());
        }
    }
    group
}

/// Says in the document that the routes of a group need a key.
fn needing_a_key(mut group: OpenApiRouter<App>) -> OpenApiRouter<App> {
    for operation in operations(&mut group) {
        let ways = [BEARER, COOKIE].map(|way| SecurityRequirement::new(way, Vec::<String>::new()));
        operation.security = Some(ways.into());
    }
    group
}

fn operations(group: &mut OpenApiRouter<App>) -> impl Iterator<Item = &mut DocumentedOperation> {
    let items = group.get_openapi_mut().paths.paths.values_mut();
    items
        .flat_map(|item| [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch])
        .flatten()
}

fn nothing_here(request: &Request) -> Refusal {
    Refusal::new(Code::NotFound, format!("there is no route {}; GET /docs lists them", request.uri().path()))
}

async fn wrong_method(request: Request) -> Refusal {
    let detail = format!("{} cannot be used on {}", request.method(), request.uri().path());
    Refusal::new(Code::MethodNotAllowed, detail)
}

/// Ends what takes too long, and puts headers on every answer that keep browsers from misusing it.
async fn in_time(State(app): State<App>, request: Request, next: Next) -> Response {
    let arrival = match request.body().is_end_stream() {
        true => Duration::ZERO,
        false => Duration::from_secs(app.settings.server.body_timeout_seconds),
    };
    let operation = Operation::new(Kind::from(request.method()), app.clock.clone(), arrival);
    let mut response = match operation.run(next.run(request)).await {
        Some(response) => response,
        None => operation::timed_out(operation.effect()).into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let policy = HeaderValue::from_static(page::CONTENT_SECURITY_POLICY);
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(policy);
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

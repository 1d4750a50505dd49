//! Exchanges: any number of answers and the next calls in one request, which may be repeated.

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use segno::{Failure, Payload};
use segno_api::work::{AnswerOutcome, ExchangeWork, ExchangedWork, FetchWork, WorkAnswer, WorkItem};

use super::work::{self, Wanted};
use crate::access::{Caller, Need};
use crate::app::{App, Tenant};
use crate::extract::Body;
use crate::problem::{Code, Refusal};
use crate::scope::ScopeParameters;

/// Most answers of one exchange.
const MAX_ANSWERS: usize = 1_000;

/// The largest whole number that every JSON reader keeps.
const MAX_NUMBER: u64 = (1 << 53) - 1;

/// Answers any number of calls and leases the next ones. With answers it returns once their
/// outcomes are durable, with the calls that are available; without answers it waits for calls. A
/// repeat, with the number of the first request, gets the same answer.
#[utoipa::path(post, path = "/v1/work/exchange", tag = "work", params(ScopeParameters), request_body = ExchangeWork, responses(
    (status = 200, body = ExchangedWork),
))]
pub async fn exchange(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    tenant: Tenant,
    Body(request): Body<ExchangeWork>,
) -> Result<Response, Refusal> {
    work::check_worker(&request.worker)?;
    work::within("answers", request.answers.len(), 0, MAX_ANSWERS)?;
    if request.number > MAX_NUMBER {
        return Err(Refusal::field("number", format!("must be at most {MAX_NUMBER}")));
    }
    let exchange = tenant.exchange((&request.worker, request.number), &request)?;
    let (answers, fetch) = request.split();
    let wanted =
        fetch.map(|fetch| work::wanted(&fetch, &tenant).map(|wanted| (fetch, wanted))).transpose()?;
    // Boxed, because the layers around a handler move its future, and these are large.
    let body = if answers.is_empty() {
        // As with a fetch: a caller that has gone, or has lost its key, gets no work leased.
        let answered = Box::pin(exchange.answer(fetched(&tenant, wanted)));
        Box::pin(app.while_allowed(&caller, Need::Work, answered)).await??
    } else {
        let owned = tenant.clone();
        let work = async move { exchange.answer(answered(&owned, answers, wanted)).await };
        Box::pin(tenant.detached(Box::pin(work))).await?
    };
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

async fn fetched(tenant: &Tenant, wanted: Option<(FetchWork, Wanted)>) -> Result<Bytes, Refusal> {
    let items = match wanted {
        Some((fetch, wanted)) => work::leased(tenant, fetch, wanted).await?,
        None => Vec::new(),
    };
    encoded(Vec::new(), items)
}

/// Answers and fetches side by side, so that all of it shares the commits of the store.
async fn answered(
    tenant: &Tenant,
    answers: Vec<WorkAnswer>,
    wanted: Option<(FetchWork, Wanted)>,
) -> Result<Bytes, Refusal> {
    let fetching = async {
        match wanted {
            Some((fetch, wanted)) => work::leased(tenant, fetch, wanted).await,
            None => Ok(Vec::new()),
        }
    };
    let outcomes = segno::join_all(answers.into_iter().map(|answer| Box::pin(outcome(tenant, answer))));
    let (outcomes, fetched) = segno::join(outcomes, Box::pin(fetching)).await;
    let items = fetched.unwrap_or_else(|refusal| {
        // The worker gets its outcomes; its next exchange, without answers, is refused with the
        // reason.
        tracing::debug!(%refusal, "an exchange fetched nothing");
        Vec::new()
    });
    let is_of_store = |outcome: &Result<AnswerOutcome, Refusal>| match outcome {
        Ok(_) => false,
        Err(refusal) => refusal.status().is_server_error(),
    };
    // Nothing has an outcome: it is the request that failed.
    if items.is_empty() && outcomes.iter().all(is_of_store) {
        return outcomes.into_iter().find_map(Result::err).map_or_else(|| encoded(Vec::new(), items), Err);
    }
    let shown = |outcome: Result<AnswerOutcome, Refusal>| {
        outcome.unwrap_or_else(|refusal| AnswerOutcome::refused(refusal.problem()))
    };
    encoded(outcomes.into_iter().map(shown).collect(), items)
}

fn encoded(outcomes: Vec<AnswerOutcome>, items: Vec<WorkItem>) -> Result<Bytes, Refusal> {
    let body = serde_json::to_vec(&ExchangedWork { outcomes, items });
    body.map(Bytes::from).map_err(|error| Refusal::new(Code::Internal, error.to_string()))
}

/// Does what one answer asks for.
async fn outcome(tenant: &Tenant, answer: WorkAnswer) -> Result<AnswerOutcome, Refusal> {
    match answer {
        WorkAnswer::Complete(request) => {
            let result = work::result_of(tenant, &request).await?;
            ended(tenant, &request.lease, Ok(result)).await
        }
        WorkAnswer::Fail(request) => {
            let (lease, failure) = work::failure_of(tenant, request).await?;
            ended(tenant, &lease, Err(failure)).await
        }
        WorkAnswer::Heartbeat(request) => Ok(work::extended(tenant, &request).await?.into()),
        WorkAnswer::Release(request) => {
            work::released(tenant, &request).await?;
            Ok(AnswerOutcome::done())
        }
    }
}

/// Ends an attempt. One that has ended with the same answer already was answered by an earlier
/// request, whose own answer was lost.
async fn ended(
    tenant: &Tenant,
    lease: &str,
    answer: Result<Payload, Failure>,
) -> Result<AnswerOutcome, Refusal> {
    let ended = match answer.clone() {
        Ok(result) => Box::pin(tenant.complete_work(lease, result)).await,
        Err(failure) => Box::pin(tenant.fail_work(lease, failure)).await,
    };
    match ended {
        Ok(()) => Ok(AnswerOutcome::done()),
        Err(refusal) if refusal.code() == segno::Code::LeaseLost.as_str() => {
            match Box::pin(tenant.has_ended_with(lease, &answer)).await {
                Ok(true) => Ok(AnswerOutcome::done()),
                Ok(false) | Err(_) => Err(refusal),
            }
        }
        Err(refusal) => Err(refusal),
    }
}

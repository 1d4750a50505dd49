//! Activities that answer by a script and remember how they were called.
//!
//! ```
//! use segno::{Activity, Context, Failure, Orchestration, Registry};
//! use segno_testkit::{Fake, TestEnv};
//!
//! const CHARGE: Activity<u32, String> = Activity::new("charge");
//! const ORDER: Orchestration<u32, String> = Orchestration::new("order");
//!
//! segno_testkit::run(async {
//!     let charge = Fake::new(CHARGE).fails_then(2, Failure::application("busy"), "receipt".to_owned());
//!     let registry = Registry::builder()
//!         .orchestration(ORDER, |ctx: Context, cents| async move { ctx.activity(CHARGE, cents).attempts(3).await });
//!     let env = TestEnv::start(charge.register(registry).build().unwrap()).await;
//!     assert_eq!(env.client().start(ORDER, 500).result().await.unwrap(), "receipt");
//!     assert_eq!(charge.calls().len(), 3);
//!     assert_eq!(charge.inputs(), [500, 500, 500]);
//! });
//! ```

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use segno::{Activity, ActivityContext, Failure, RegistryBuilder};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// One call of a fake: an attempt of an activity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call<I> {
    /// What it was called with.
    pub input: I,
    /// Instance that called it.
    pub instance: String,
    /// Number of the attempt by the retry policy, from 1.
    pub attempt: u32,
    /// How often this attempt was handed to a worker.
    pub delivery: u32,
    /// The same for every attempt of one call.
    pub idempotency_key: String,
}

type Answer<I, O> = Box<dyn FnMut(&Call<I>) -> Result<O, Failure> + Send>;

struct State<I, O> {
    script: VecDeque<Result<O, Failure>>,
    answer: Option<Answer<I, O>>,
    calls: Vec<Call<I>>,
}

/// A scripted activity. Cheap to clone; all clones share script and calls.
pub struct Fake<I, O> {
    activity: Activity<I, O>,
    state: Arc<Mutex<State<I, O>>>,
}

impl<I, O> Clone for Fake<I, O> {
    fn clone(&self) -> Self {
        Fake { activity: self.activity.clone(), state: self.state.clone() }
    }
}

impl<I, O> Fake<I, O>
where
    I: DeserializeOwned + Clone + Send + 'static,
    O: Serialize + Clone + Send + 'static,
{
    /// A fake for an activity. Without an answer every call fails.
    pub fn new(activity: Activity<I, O>) -> Self {
        let state = State { script: VecDeque::new(), answer: None, calls: Vec::new() };
        Fake { activity, state: Arc::new(Mutex::new(state)) }
    }

    /// Answers every call that no script covers with this result.
    #[must_use]
    pub fn returns(self, output: O) -> Self {
        self.answers(move |_| Ok(output.clone()))
    }

    /// Answers every call that no script covers with this failure.
    #[must_use]
    pub fn fails(self, failure: Failure) -> Self {
        self.answers(move |_| Err(failure.clone()))
    }

    /// Fails this often, then answers with this result for ever.
    #[must_use]
    pub fn fails_then(self, times: usize, failure: Failure, output: O) -> Self {
        self.then_all(std::iter::repeat_n(Err(failure), times)).returns(output)
    }

    /// The next answers, one for each call, before anything else.
    #[must_use]
    pub fn then_all(self, answers: impl IntoIterator<Item = Result<O, Failure>>) -> Self {
        self.lock().script.extend(answers);
        self
    }

    /// Answers calls that no script covers by this function.
    #[must_use]
    pub fn answers(self, answer: impl FnMut(&Call<I>) -> Result<O, Failure> + Send + 'static) -> Self {
        self.lock().answer = Some(Box::new(answer));
        self
    }

    /// Registers the fake under the name of its activity.
    #[must_use]
    pub fn register(&self, registry: RegistryBuilder) -> RegistryBuilder {
        let fake = self.clone();
        registry.activity(self.activity.clone(), move |ctx: ActivityContext, input: I| {
            let answer = fake.call(&ctx, input);
            async move { answer }
        })
    }

    /// All calls so far, in order.
    pub fn calls(&self) -> Vec<Call<I>> {
        self.lock().calls.clone()
    }

    /// The inputs of all calls so far, in order.
    pub fn inputs(&self) -> Vec<I> {
        self.lock().calls.iter().map(|call| call.input.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State<I, O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call(&self, ctx: &ActivityContext, input: I) -> Result<O, Failure> {
        let call = Call {
            input,
            instance: ctx.instance_id().to_owned(),
            attempt: ctx.attempt(),
            delivery: ctx.delivery(),
            idempotency_key: ctx.idempotency_key().to_owned(),
        };
        let mut state = self.lock();
        state.calls.push(call.clone());
        if let Some(scripted) = state.script.pop_front() {
            return scripted;
        }
        match &mut state.answer {
            Some(answer) => answer(&call),
            None => Err(Failure::application(format!("the fake {:?} has no answer", self.activity.name()))
                .non_retryable()),
        }
    }
}

//! Typed names: constants that tie a name to its types, so that calls and registrations cannot disagree.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

macro_rules! handle {
    ($(#[doc = $doc:literal])+ $name:ident<$($param:ident),+>) => {
        $(#[doc = $doc])+
        pub struct $name<$($param),+> {
            name: Cow<'static, str>,
            types: PhantomData<fn($($param),+)>,
        }

        impl<$($param),+> $name<$($param),+> {
            /// A handle with a name that is known when compiling.
            pub const fn new(name: &'static str) -> Self {
                $name { name: Cow::Borrowed(name), types: PhantomData }
            }

            /// A handle with a name that is known only at run time.
            pub fn named(name: impl Into<String>) -> Self {
                $name { name: Cow::Owned(name.into()), types: PhantomData }
            }

            /// The name.
            pub fn name(&self) -> &str {
                &self.name
            }
        }

        impl<$($param),+> Clone for $name<$($param),+> {
            fn clone(&self) -> Self {
                $name { name: self.name.clone(), types: PhantomData }
            }
        }

        impl<$($param),+> fmt::Debug for $name<$($param),+> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:?})"), self.name)
            }
        }
    };
}

handle! {
    /// An activity: a function that takes `I`, returns `O`, and may do anything.
    Activity<I, O>
}
handle! {
    /// A one-shot external event that carries a `T`.
    Signal<T>
}
handle! {
    /// A FIFO mailbox of `T`. Messages wait until they are read, also across continue-as-new.
    Mailbox<T>
}

/// An orchestration: durable code that takes `I` and returns `O`.
pub struct Orchestration<I, O> {
    name: Cow<'static, str>,
    version: Option<Cow<'static, str>>,
    types: PhantomData<fn(I) -> O>,
}

impl<I, O> Orchestration<I, O> {
    /// A handle with a name that is known when compiling.
    pub const fn new(name: &'static str) -> Self {
        Orchestration { name: Cow::Borrowed(name), version: None, types: PhantomData }
    }

    /// A handle with a name that is known only at run time.
    pub fn named(name: impl Into<String>) -> Self {
        Orchestration { name: Cow::Owned(name.into()), version: None, types: PhantomData }
    }

    /// The same orchestration in exactly this version, for registering, starting, children and continue-as-new.
    #[must_use]
    pub fn at(mut self, version: impl Into<Cow<'static, str>>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version, if one was chosen.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }
}

impl<I, O> Clone for Orchestration<I, O> {
    fn clone(&self) -> Self {
        Orchestration { name: self.name.clone(), version: self.version.clone(), types: PhantomData }
    }
}

impl<I, O> fmt::Debug for Orchestration<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Orchestration({:?}", self.name)?;
        if let Some(version) = &self.version {
            write!(f, " at {version}")?;
        }
        f.write_str(")")
    }
}

use super::value::choices;
use tidegate::admission::MessagePriority;

/// Treatment of requests without a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anonymous {
    /// Refuses them.
    Refuse,
    /// Lets them claim this priority or a lower one; never Critical.
    UpTo(MessagePriority),
}

choices! { Anonymous {
    "high" Self::UpTo(MessagePriority::High), "normal" Self::UpTo(MessagePriority::Normal),
    "low" Self::UpTo(MessagePriority::Low), "refuse" Self::Refuse
}}

/// Declares policies, each value with its word.
macro_rules! policies {
    ($( $(#[$meta:meta])* $Policy:ident {
        $( $(#[$value_meta:meta])* $word:literal $Value:ident, )*
    } )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Policy { $( $(#[$value_meta])* $Value, )* }

        choices! { $Policy { $( $word Self::$Value ),* } }
    )*};
}

policies! {
    /// The `Host` header that an upstream receives.
    HostPolicy {
        /// The client's.
        "preserve" Preserve,
        /// The upstream's own host and port.
        "upstream" Upstream,
    }

    /// Treatment of the headers that tell an upstream about the client.
    ForwardedPolicy {
        /// Adds the client to the headers of the request: right behind another proxy.
        "append" Append,
        /// Drops the headers of the request, which a client can forge, and writes new ones: right at the edge.
        "replace" Replace,
        /// Passes the headers unchanged and adds none.
        "off" Off,
    }

    /// The `Authorization` header that an upstream receives.
    AuthorizationPolicy {
        /// The client's, unless it is a token of this gateway.
        "strip" Strip,
        /// The client's, whatever it is.
        "pass" Pass,
        /// The upstream's own key, or none if it has none.
        "replace" Replace,
    }

    /// TLS of a port.
    TlsMode {
        /// With a certificate that is configured for the port or for all ports; plain text without one.
        "auto" Auto,
        /// Plain text, also beyond loopback.
        "off" Off,
    }

    /// Format of log lines.
    LogFormat {
        /// Text for people.
        "text" Text,
        /// One JSON object per line.
        "json" Json,
    }

    /// HTTP status of a refusal because all upstreams are busy.
    OverloadStatus {
        /// 503 Service Unavailable.
        "503" Unavailable,
        /// 529, the "overloaded" of some model providers.
        "529" Overloaded,
        /// 429 Too Many Requests.
        "429" TooMany,
    }

    /// Source of the load of upstreams.
    LoadSource {
        /// Scrapes of their metrics, and headers of their responses.
        "scrape" Scrape,
        /// Headers of their responses alone: the gateway sends no request of its own, also not to learn models.
        "headers" Headers,
    }

    /// Treatment of ORCA load headers in responses.
    Orca {
        /// Reads them.
        "read" Read,
        /// Reads them, and asks upstreams to send them.
        "ask" Ask,
        /// Passes them unread.
        "off" Off,
    }

    /// The executor that runs tasks in this process.
    LocalExecutor {
        /// Runs tasks in a sandbox.
        "process" Process,
        /// Waits for a fixed time instead of running tasks.
        "mock" Mock,
    }

    /// Access of a runtime's tasks to the network.
    NetworkUse {
        /// An attempt to use the network ends the task.
        "deny" Deny,
        /// An attempt to use the network fails.
        "fail" Fail,
        /// Tasks may use the network.
        "allow" Allow,
    }
}

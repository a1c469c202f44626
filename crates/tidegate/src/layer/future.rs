use super::AdmittedBody;
use super::guard::Guard;
use crate::Outcome;
use http::Response;
use pin_project_lite::pin_project;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

pin_project! {
    /// The future response of an [`AdmissionService`](super::AdmissionService) or an
    /// [`AdaptiveLimitService`](super::AdaptiveLimitService).
    ///
    /// The future owns the permit or the slot until the response is ready, then moves it into the body.
    ///
    /// # Panics
    ///
    /// When polled again after it was ready.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct AdmissionFuture<F, B> {
        #[pin]
        state: State<F, B>,
    }
}

pin_project! {
    #[derive(Debug)]
    #[project = StateProjection]
    enum State<F, B> {
        Admitted {
            #[pin]
            response: F,
            guard: Option<Guard>,
        },
        Refused {
            response: Option<Response<B>>,
        },
    }
}

// === impl AdmissionFuture ===

impl<F, B> AdmissionFuture<F, B> {
    pub(super) fn admitted(response: F, guard: Guard) -> Self {
        Self { state: State::Admitted { response, guard: Some(guard) } }
    }

    pub(super) fn refused(response: Response<B>) -> Self {
        Self { state: State::Refused { response: Some(response) } }
    }
}

impl<F, B, E> Future for AdmissionFuture<F, B>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: http_body::Body,
{
    type Output = Result<Response<AdmittedBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProjection::Admitted { response, guard } => {
                let result = ready!(response.poll(cx));
                let mut guard = guard.take().expect("polled after completion");
                Poll::Ready(match result {
                    Ok(response) => {
                        guard.responded(response.status());
                        Ok(response.map(|body| AdmittedBody::new(body, guard)))
                    }
                    Err(error) => {
                        guard.finish(Outcome::Dropped);
                        Err(error)
                    }
                })
            }
            StateProjection::Refused { response } => {
                let response = response.take().expect("polled after completion");
                Poll::Ready(Ok(response.map(AdmittedBody::without_guard)))
            }
        }
    }
}

use crate::proxy::GatewayBody;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until};

/// Enough for every scraper and operator; one more waits for one of them to leave.
const CONNECTIONS_MAX: usize = 256;

/// How long one of them may say nothing. Operators come when things go wrong: they can't wait for as long as
/// clients may be slow until somebody's forgotten connections have made room.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// Answers whoever connects to an admin port, for ever. Connections that ask for nothing are closed after a few
/// seconds, and sooner where the timeout for heads is shorter.
pub async fn serve_operators<A, F>(listener: TcpListener, header_timeout: Duration, answer: A)
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<GatewayBody>> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let silence_max = header_timeout.min(SILENCE_MAX);
    loop {
        // The semaphore is never closed, so this waits for a place and never fails.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((tcp, _)) => {
                let answer = answer.clone();
                tokio::spawn(async move {
                    serve_operator(tcp, silence_max, answer).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection on the admin port");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve_operator<A, F>(tcp: TcpStream, silence_max: Duration, answer: A)
where
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<GatewayBody>> + Send + 'static,
{
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(silence_max);
    // A peer that answers nothing would not let its connection be shut down either.
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(silence_max)
        .keep_alive_timeout(silence_max);
    let last_asked = Arc::new(Mutex::new(Instant::now()));
    let asked = Arc::clone(&last_asked);
    let service = service_fn(move |request| {
        *asked.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let answered = answer(request);
        async move { Ok::<_, Infallible>(answered.await) }
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(tcp), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = silence(&last_asked, silence_max) => {
            // What is being answered, a stream of events too, is still answered to its end.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "an operator's connection ended");
    }
}

/// Waits until nothing was asked for so long. A timeout for heads alone does not see a connection that has not
/// said a byte: which protocol it speaks is not known yet.
async fn silence(last_asked: &Mutex<Instant>, longest: Duration) {
    loop {
        let until = *last_asked.lock().unwrap_or_else(PoisonError::into_inner) + longest;
        if Instant::now() >= until {
            return;
        }
        sleep_until(until).await;
    }
}

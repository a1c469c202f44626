use super::credit::gate::Gate;
use super::inbox::Inbox;
use super::receiver::WindowedReceiver;
use super::sender::WindowedSender;
use super::sync::{Arc, Padded};
use super::weight::Window;

/// A channel that holds at most this window, which can be resized at any time through a
/// [`WindowGauge`](super::WindowGauge).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use tidegate::channel::{Weigh, Weight, Window, windowed};
///
/// struct Line(String);
///
/// impl Weigh for Line {
///     fn weight(&self) -> Weight {
///         Weight::one(self.0.len() as u32)
///     }
/// }
///
/// let (sender, mut receiver) = windowed(Window { items: 1024, bytes: 64 * 1024 });
/// tokio::spawn(async move {
///     for number in 0..10_000 {
///         if sender.send(Line(format!("line {number}"))).await.is_err() {
///             break;
///         }
///     }
/// });
///
/// let (mut lines, mut count) = (Vec::new(), 0);
/// while let Some(lease) = receiver.lease_many(&mut lines, 64).await {
///     count += lines.len();
///     lines.clear();
///     drop(lease);
/// }
/// assert_eq!(count, 10_000);
/// # }
/// ```
#[must_use]
pub fn windowed<T>(window: Window) -> (WindowedSender<T>, WindowedReceiver<T>) {
    let gate = Gate::new(window);
    let inbox = Arc::new(Padded(Inbox::new()));
    let sender = WindowedSender::new(Arc::clone(&inbox), Arc::clone(&gate));
    (sender, WindowedReceiver::new(inbox, gate))
}

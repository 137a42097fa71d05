//! The smallest host on the web: trains between a page's frames, on WebGPU or else on the CPU, and never blocks.

use js_sys::{Function, Promise};
use querent::{Budget, Engine, data::synthetic, nmppg::Config, nmppg::Trainer};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = requestAnimationFrame)]
    fn request_frame(callback: &Function) -> i32;
    #[wasm_bindgen(js_namespace = console)]
    fn log(text: &str);
}

#[wasm_bindgen(start)]
async fn main() -> Result<(), JsError> {
    // A page with a device of its own lends it: Engine::on(device, queue), and encode(…) into its own encoder.
    let engine = Engine::auto().await?;
    let data = synthetic::syn1(0, [2_000, 500, 500])?.standardized();
    let mut config = Config::new(0.02);
    (config.schedule.warm_up_epochs, config.schedule.stage_epochs, config.schedule.epoch_steps) = (1, 1, 20);
    let mut trainer = Trainer::new(&engine, &data, config)?;
    loop {
        trainer.advance(Budget::Millis(4.0))?; // submitted to the device, or done here
        let seen = trainer.try_progress()?;
        if let Some(epoch) = seen.epoch {
            log(&format!("{}: validation loss {:.4}", epoch.title(), epoch.validation.loss));
        }
        if seen.finished {
            break;
        }
        // The page draws, and the device's results come in.
        let frame = Promise::new(&mut |resolve, _| {
            request_frame(&resolve);
        });
        JsFuture::from(frame).await.map_err(|_| JsError::new("the page is gone"))?;
    }
    let model = trainer.try_model()?.ok_or_else(|| JsError::new("the run is not over"))?;
    log(&format!("a model of {} bytes", model.to_bytes()?.len()));
    Ok(())
}

//! The README's example of the library: training, saving and asking.

use querent::{
    Engine, Step,
    data::synthetic,
    methods::nmppg::{Alpha, Config, Trainer},
};

fn main() -> querent::Result<()> {
    let engine = Engine::auto_blocking()?; // or Engine::cpu(), Engine::gpu_blocking()?, Engine::on(device, queue)
    let data = synthetic::syn1(0, synthetic::SYN_SIZES)?.standardized();
    let mut trainer = Trainer::new(&engine, &data, Config::new(Alpha::Auto))?;
    while let Some(epoch) = trainer.epoch_blocking()? {
        println!("{}: {}", epoch.title(), epoch.headline(trainer.best()));
    }
    let model = trainer.finish_blocking()?;
    model.save("syn1.safetensors")?;

    let mut session = model.session().with_alpha(model.alpha_for_spend(3.0)?)?;
    while let Step::Acquire(feature) = session.next() {
        session.observe(feature, 0.3)?; // measured, in the table's units
    }
    println!("{}: {:?}", session.label(), session.predict());
    Ok(())
}

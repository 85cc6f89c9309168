#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    geomdp_fuzz::groups::run(data, &mut Default::default());
});

// What the host draws: shapes and letters of its own, and curves and a heat map from the trainer's
// buffers, which are bound as they are.
struct View {
    // Of the window, in pixels.
    size: vec2<f32>,
    // Smallest and largest value of the curves.
    range: vec2<f32>,
    // Where the curves and the heat map are: left, top, width, height.
    plot: vec4<f32>,
    heat: vec4<f32>,
    // Of the curves: points an epoch, epochs; of the paths: steps, features.
    points: u32,
    epochs: u32,
    steps: u32,
    features: u32,
    // What a unit of cost is worth.
    alpha: f32,
}
@group(0) @binding(0) var<uniform> view: View;

fn place(pixel: vec2<f32>) -> vec4<f32> {
    return vec4(pixel.x / view.size.x * 2.0 - 1.0, 1.0 - pixel.y / view.size.y * 2.0, 0.0, 1.0);
}

// Shapes: rectangles filled from the atlas, which holds the letters and a white spot.
@group(0) @binding(1) var atlas: texture_2d<f32>;
@group(0) @binding(2) var smooth_sampler: sampler;

struct Shape {
    @builtin(position) position: vec4<f32>,
    @location(0) at: vec2<f32>,
    @location(1) color: vec4<f32>,
}

@vertex
fn shape_corner(
    @builtin(vertex_index) index: u32,
    @location(0) rectangle: vec4<f32>,
    @location(1) source: vec4<f32>,
    @location(2) color: vec4<f32>,
) -> Shape {
    let corner = vec2(f32(index & 1u), f32(index >> 1u));
    return Shape(place(rectangle.xy + corner * rectangle.zw), source.xy + corner * source.zw, color);
}

@fragment
fn shape_color(shape: Shape) -> @location(0) vec4<f32> {
    let size = vec2<f32>(textureDimensions(atlas));
    return vec4(shape.color.rgb, shape.color.a * textureSample(atlas, smooth_sampler, shape.at / size).a);
}

// Curves: a quad a segment, its ends read from the buffer. Points are 8 floats.
@group(0) @binding(3) var<storage, read> training: array<f32>;
@group(0) @binding(4) var<storage, read> validation: array<f32>;

// A point's epoch and value; a negative epoch if it is not there yet.
fn training_point(i: u32) -> vec2<f32> {
    let at = i * 8u;
    let instances = training[at + 4u];
    if (i >= view.points * view.epochs || instances == 0.0) {
        return vec2(-1.0, 0.0);
    }
    var sum = training[at + 1u];
    var count = instances;
    // The sums run through the epoch: the mean since the last point is what is of interest.
    if (i % view.points != 0u && training[at - 4u] > 0.0) {
        sum -= training[at - 7u];
        count -= training[at - 4u];
    }
    return vec2(f32(i + 1u) / f32(view.points), sum / max(count, 1.0));
}

fn validation_point(i: u32) -> vec2<f32> {
    let at = i * 8u;
    let rows = validation[at + 4u];
    if (i >= view.epochs || rows == 0.0) {
        return vec2(-1.0, 0.0);
    }
    return vec2(f32(i + 1u), (validation[at] + view.alpha * validation[at + 2u]) / rows);
}

fn on_plot(point: vec2<f32>) -> vec2<f32> {
    let share = (point.y - view.range.x) / (view.range.y - view.range.x);
    let x = view.plot.x + point.x / f32(view.epochs) * view.plot.z;
    return vec2(x, view.plot.y + (1.0 - clamp(share, 0.0, 1.0)) * view.plot.w);
}

fn segment(index: u32, start: vec2<f32>, end: vec2<f32>, width: f32) -> vec4<f32> {
    if (start.x < 0.0 || end.x < 0.0) {
        return vec4(2.0, 2.0, 0.0, 1.0);
    }
    let a = on_plot(start);
    let b = on_plot(end);
    let along = normalize(b - a + vec2(1e-4, 0.0));
    let across = vec2(-along.y, along.x) * (f32(index & 1u) - 0.5) * width;
    return place(select(a - along * 0.3 * width, b + along * 0.3 * width, (index >> 1u) == 1u) + across);
}

@vertex
fn training_corner(@builtin(vertex_index) index: u32, @builtin(instance_index) i: u32) -> @builtin(position) vec4<f32> {
    return segment(index, training_point(i), training_point(i + 1u), 1.5);
}

@vertex
fn validation_corner(@builtin(vertex_index) index: u32, @builtin(instance_index) i: u32) -> @builtin(position) vec4<f32> {
    return segment(index, validation_point(i), validation_point(i + 1u), 3.0);
}

@fragment
fn training_color() -> @location(0) vec4<f32> {
    return vec4(0.55, 0.68, 0.86, 1.0);
}

@fragment
fn validation_color() -> @location(0) vec4<f32> {
    return vec4(0.86, 0.34, 0.13, 1.0);
}

// The heat map: a column a step, a row a feature, the stop at the bottom.
@group(0) @binding(5) var<storage, read> paths: array<u32>;

@vertex
fn heat_corner(@builtin(vertex_index) index: u32) -> @builtin(position) vec4<f32> {
    return place(view.heat.xy + vec2(f32(index & 1u), f32(index >> 1u)) * view.heat.zw);
}

@fragment
fn heat_color(@builtin(position) position: vec4<f32>) -> @location(0) vec4<f32> {
    let cells = vec2(f32(view.steps), f32(view.features + 1u));
    let at = (position.xy - view.heat.xy) / view.heat.zw * cells;
    let inside = fract(at) * view.heat.zw / cells;
    if (min(inside.x, inside.y) < 1.0) {
        return vec4(1.0);
    }
    let cell = vec2<u32>(clamp(at, vec2(0.0), cells - 1.0));
    var total = 0u;
    for (var action = 0u; action <= view.features; action++) {
        total += paths[cell.x * (view.features + 1u) + action];
    }
    let share = f32(paths[cell.x * (view.features + 1u) + cell.y]) / max(f32(total), 1.0);
    let full = select(vec3(0.03, 0.18, 0.42), vec3(0.45, 0.45, 0.45), cell.y == view.features);
    return vec4(mix(vec3(0.94, 0.95, 0.97), full, pow(share, 0.7)), 1.0);
}

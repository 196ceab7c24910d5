// One Vega-Lite specification as SVG text, or at a `scale` as [width, height, pixels]; at once, without a page.
const surface = { createElement: () => new OffscreenCanvas(1, 1) };     // what Vega measures text with, and draws on
globalThis.__scantlingDraw = (text, scale) => {
  const held = globalThis.document;
  globalThis.document = surface;
  try {
    const view = new View(parse(compile(JSON.parse(text)).spec), { renderer: "none" });
    view.run();
    const { left, top, right, bottom } = view.padding();
    const size = [view._viewWidth + left + right, view._viewHeight + top + bottom].map(length => Math.max(0, length));
    const origin = [left + view._origin[0], top + view._origin[1]];
    const drawn = new (scale ? CanvasRenderer : SVGStringRenderer)(view.loader());
    drawn.initialize(null, ...size, origin, scale || 1).background(view.background()).render(view.scenegraph().root);
    if (!scale) return drawn.svg();
    const canvas = drawn.canvas(), { width, height } = canvas;
    return [width, height, canvas.getContext("2d").getImageData(0, 0, width, height).data];
  } finally {
    if (held === undefined) delete globalThis.document; else globalThis.document = held;
  }
};

// Browsers start no worker for pages that are opened as files. There, the search runs in a frame.
// The search's own script looks for this name in the window above it.
class IFrameWorker extends EventTarget {
  constructor(script) {
    super();
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.body.append(frame);
    const inside = frame.contentWindow;
    inside.document.write("<!DOCTYPE html><body></body>");
    inside.document.close();
    inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", {data}));
    // What it awaits before it answers; scripts run in order.
    inside.importScripts = (...urls) => Promise.all(urls.map(url => this.load(inside, url)));
    this.inside = inside;
    this.ready = this.load(inside, script);
  }

  load(inside, url) {
    return new Promise((done, failed) => {
      const element = inside.document.createElement("script");
      Object.assign(element, {src: url, async: false, onload: done, onerror: failed});
      inside.document.body.append(element);
    });
  }

  postMessage(data) {
    this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", {data})));
  }
}

if (location.protocol === "file:") Object.assign(window, {IFrameWorker, Worker: IFrameWorker});

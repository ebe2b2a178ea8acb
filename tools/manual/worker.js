// Search opened from disk: browsers start no worker from a file, so its script runs in a frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = "<!doctype html>";
      this.ready = new Promise((done) => {
        this.frame.onload = () => this.begin(url, done);
      });
      document.documentElement.append(this.frame);
    }

    begin(url, done) {
      const inner = this.frame.contentWindow;
      const load = (address) =>
        new Promise((loaded) => {
          const script = inner.document.createElement("script");
          script.src = address;
          script.onload = loaded;
          inner.document.head.append(script);
        });
      inner.importScripts = (...addresses) => Promise.all(addresses.map(load));
      inner.postMessage = (data) => this.tell(data);
      load(url).then(() => done(inner));
    }

    tell(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    postMessage(data) {
      this.ready.then((inner) => inner.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}

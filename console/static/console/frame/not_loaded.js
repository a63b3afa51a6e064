// What works where the page's modules do not: it says that something was not loaded, loads the page
// again, and signs out. A plain script that needs nothing else, the first in the head, so that it hears
// of what fails after it. Without it, css/base.css shows the same message once the page takes long;
// without that, the message is not hidden.

(() => {
  const root = document.documentElement;
  const LOGOUT_MS = 10_000;

  const isStyleSheet = (each) => each instanceof HTMLLinkElement && each.relList.contains("stylesheet");
  // Such errors do not bubble. A module's is also that of one it imports.
  const note = ({ target }) => {
    if (target instanceof HTMLScriptElement || isStyleSheet(target)) root.dataset.failed = "";
  };

  const press = (event) => {
    const pressed = event.target instanceof Element ? event.target.closest("#load-again, #sign-out") : null;
    const isOurs = pressed?.id === "load-again" || (pressed && document.querySelector("main[aria-busy]"));
    if (!isOurs) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (pressed.id === "sign-out") void signOut();
    // Not as a link: the values in a mailed link's fragment are to stay.
    else location.reload();
  };

  // As frame/shell.js does, in short.
  const signOut = async () => {
    const headers = { "X-Zonal-Console": "1", "Content-Type": "application/json" };
    try {
      const signal = AbortSignal.timeout(LOGOUT_MS);
      const answer = await fetch("/v1/auth/logout", { method: "POST", headers, body: "{}", signal });
      const { code = "unknown" } = answer.ok ? { code: "" } : await answer.json();
      // Any other refusal means that the session is over already.
      if (answer.status >= 500 || ["csrf_failed", "unknown"].includes(code)) throw new Error(code);
    } catch {
      const status = document.getElementById("status");
      status.textContent = "You are still signed in: the service cannot be reached. Try again.";
      status.classList.add("shown");
      return;
    }
    for (const storage of [localStorage, sessionStorage]) {
      for (const key of Object.keys(storage)) if (key.startsWith("zonal-draft:")) storage.removeItem(key);
    }
    new BroadcastChannel("zonal-console").postMessage("changed");
    location.assign("/console/sign-in");
  };

  addEventListener("error", note, true);
  addEventListener("click", press, true);
})();

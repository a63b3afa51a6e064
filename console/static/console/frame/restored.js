// A page that the browser kept, to show it again at Back, may hold keys, codes and results of a session
// that has ended since: it is hidden as it is left, and loaded anew when it is shown again. `no-store`
// does not ensure that: Chrome keeps such pages, too, until a cookie changes. A plain script in the head,
// so that it listens whatever becomes of the page's modules; the admin's pages have it as well.

addEventListener("pagehide", (event) => {
  if (event.persisted) document.documentElement.hidden = true;
});
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

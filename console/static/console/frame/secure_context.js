// Over plain http, at another name than localhost, browsers drop the console's Secure cookies and send no
// Sec-Fetch-Site, so that a sign-in succeeds and every page after it is refused. A plain script in the
// head: it says so instead of the page, before a password is typed, whatever the page's modules do.

if (!isSecureContext) {
  addEventListener("DOMContentLoaded", () => {
    for (const part of document.body.children) part.hidden = part.id !== "insecure";
  });
}

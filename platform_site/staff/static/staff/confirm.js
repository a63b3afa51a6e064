// @ts-check
/** Send a confirmation once, however often its button is pressed. */

for (const form of document.querySelectorAll("form[data-once]")) {
  form.addEventListener("submit", (event) => {
    if (form.hasAttribute("data-sent")) event.preventDefault();
    form.setAttribute("data-sent", "");
  });
}

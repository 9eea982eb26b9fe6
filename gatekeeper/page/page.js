// Puts in the sections that the server sends; keeps open what a reader has opened.
"use strict";

const connection = () => document.getElementById("connection");

function parsed(html) {
  const template = document.createElement("template");
  template.innerHTML = html; // the server's: everything that comes from a log is escaped
  return template.content.firstElementChild;
}

// Rows stay where they are: nobody presses a button that has moved under the pointer.
function mergeRows(old, next) {
  const wanted = new Map([...next.children].map((row) => [row.dataset.key, row]));
  const busy = old.matches(":hover") || old.contains(document.activeElement);
  for (const row of [...old.children]) {
    if (wanted.has(row.dataset.key)) continue;
    const form = row.querySelector("form"), open = row.querySelector("details").open;
    if (!open && !(busy && form)) row.remove();
    else if (form) {
      row.classList.add("done");
      form.querySelectorAll("button").forEach((button) => (button.disabled = true));
    }
  }
  let here = old.firstElementChild;
  for (const [key, row] of wanted) {
    const known = old.querySelector(`:scope > [data-key="${key}"]`);
    if (!known) old.insertBefore(row, here);
    else {
      const summary = row.querySelector("summary"), shown = known.querySelector("summary");
      if (summary.innerHTML !== shown.innerHTML) shown.replaceChildren(...summary.childNodes);
      here = known.nextElementSibling;
    }
  }
}

function replace(old, next) {
  const rows = old.querySelector("[data-rows]"), nextRows = next.querySelector("[data-rows]");
  if (rows && nextRows) {
    mergeRows(rows, nextRows);
    const caption = old.querySelector(".caption"), given = next.querySelector(".caption");
    if (caption && given && caption.textContent !== given.textContent) caption.replaceWith(given);
    return;
  }
  const open = [...old.querySelectorAll("details")].map((each) => each.open);
  [...next.querySelectorAll("details")].forEach((each, i) => (each.open = open[i] ?? false));
  old.replaceWith(next);
}

function follow() {
  const source = new EventSource("updates");
  source.onmessage = (event) => {
    for (const html of Object.values(JSON.parse(event.data))) {
      const next = parsed(html), old = document.getElementById(next.id);
      if (old) replace(old, next);
    }
    connection().textContent = "";
    document.documentElement.dataset.live = "yes";
  };
  source.onerror = () => {
    connection().textContent = "Not connected: trying again.";
    document.documentElement.dataset.live = "no";
    if (source.readyState === EventSource.CLOSED) setTimeout(follow, 1000);
  };
}

async function fill(details) {
  const link = details.querySelector(":scope > p > a");
  if (!link) return;
  try {
    const answer = await fetch(link.href);
    if (!answer.ok) throw new Error(await answer.text());
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    link.parentElement.replaceWith(page.querySelector("article"));
  } catch (error) {
    link.textContent = `Open this output (${error.message})`;
  }
}

async function send(form, button) {
  const row = form.closest("[data-key]"), message = document.querySelector(".message");
  const body = new URLSearchParams(new FormData(form, button));
  const buttons = [...form.querySelectorAll("button")];
  buttons.forEach((each) => (each.disabled = true));
  let text = "";
  try {
    const answer = await fetch(form.action, { method: "POST", body, redirect: "manual" });
    if (answer.type !== "opaqueredirect") text = await answer.text();
  } catch (error) {
    text = `The verdict was not taken: ${error.message}`;
  }
  if (message) message.textContent = text;
  if (text) buttons.forEach((each) => (each.disabled = false));
  else row.classList.add("done");
}

document.addEventListener("toggle", (event) => {
  if (event.target.matches("[data-rows] details") && event.target.open) fill(event.target);
}, true);
document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-rows] form")) return;
  event.preventDefault();
  send(event.target, event.submitter);
});
follow();

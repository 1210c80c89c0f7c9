// Follows what happens: the gateway sends the main part of this page whenever it changes. Without scripts, the page is
// as it was when it was loaded.
"use strict";

const main = document.getElementById("main");
const live = document.getElementById("live");
const updated = document.getElementById("updated");

// replace shows another main part, and keeps the focus, what is typed, what is open, and where regions are scrolled to.
function replace(html) {
  const next = document.createElement("template");
  next.innerHTML = html;
  const focused = document.activeElement;
  const inside = focused !== main && main.contains(focused);
  const id = inside ? focused.id || (focused.tagName === "SUMMARY" ? focused.parentElement.id : "") : "";
  const href = inside ? focused.getAttribute("href") : null;
  const links = () => Array.from(main.querySelectorAll("a")).filter((a) => a.getAttribute("href") === href);
  const nth = href === null ? 0 : links().indexOf(focused); // of the links with the same target
  const typed = document.getElementById("q");
  const value = typed && typed === focused ? { text: typed.value, start: typed.selectionStart, end: typed.selectionEnd } : null;
  const scrolled = Array.from(main.querySelectorAll(".scroll"), (e) => e.scrollLeft);
  const open = new Map(Array.from(main.querySelectorAll("details"), (e) => [e.id, e.open]));
  main.replaceChildren(next.content);
  main.querySelectorAll("details").forEach((e) => { e.open = open.get(e.id) ?? e.open; });
  main.querySelectorAll(".scroll").forEach((e, i) => { e.scrollLeft = scrolled[i] || 0; });
  let target = id ? document.getElementById(id) : null;
  if (!target && href !== null) {
    target = links()[nth] || links()[0];
  }
  if (target && target.tagName === "DETAILS") {
    target = target.querySelector("summary");
  }
  if (inside) {
    (target || main).focus({ preventScroll: true }); // what had the focus may be gone
  }
  if (value && target) {
    target.value = value.text;
    target.setSelectionRange(value.start, value.end);
  }
}

const events = new EventSource(location.href);
events.onmessage = (event) => { live.hidden = true; replace(event.data); };
events.addEventListener("updated", (event) => {
  live.hidden = true;
  updated.dateTime = event.data;
  updated.textContent = event.data.replace("T", " ").replace("Z", " UTC"); // as page.html has it
});
events.onopen = () => { live.hidden = true; };
events.onerror = () => { live.hidden = false; };

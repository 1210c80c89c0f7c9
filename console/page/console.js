// Follows what happens: the gateway sends the main part of this page whenever it changes. Without scripts, the page is
// as it was when it was loaded.
"use strict";

const main = document.getElementById("main");
const live = document.getElementById("live");

// replace shows another main part, and keeps the focus, what is typed, and where regions are scrolled to.
function replace(html) {
  const next = document.createElement("template");
  next.innerHTML = html;
  const focused = document.activeElement;
  const id = focused && main.contains(focused) ? focused.id : "";
  const href = focused && main.contains(focused) ? focused.getAttribute("href") : null;
  const typed = document.getElementById("q");
  const value = typed && typed === focused ? { text: typed.value, start: typed.selectionStart, end: typed.selectionEnd } : null;
  const scrolled = Array.from(main.querySelectorAll(".scroll"), (e) => e.scrollLeft);
  main.replaceChildren(next.content);
  main.querySelectorAll(".scroll").forEach((e, i) => { e.scrollLeft = scrolled[i] || 0; });
  let target = id ? document.getElementById(id) : null;
  if (!target && href !== null) {
    target = Array.from(main.querySelectorAll("a")).find((a) => a.getAttribute("href") === href);
  }
  if (target) {
    target.focus({ preventScroll: true });
  }
  if (value && target) {
    target.value = value.text;
    target.setSelectionRange(value.start, value.end);
  }
}

const events = new EventSource(location.href);
events.onmessage = (event) => { live.hidden = true; replace(event.data); };
events.onopen = () => { live.hidden = true; };
events.onerror = () => { live.hidden = false; };

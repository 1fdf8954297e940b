import { audit } from "../src/view/audit.js";
import { h, textOf } from "../src/view/h.js";
import { render } from "../src/view/render.js";
import { equal, test } from "./kit.js";

test("attributes and children that are nothing are left out", () => {
  equal(render(h("p", { id: null, hidden: true, title: false }, null, false, "a", ["b"])), "<p hidden>ab</p>");
});

test("text is escaped", () => {
  equal(render(h("p", { title: '"' }, "<&>")), '<p title="&quot;">&lt;&amp;&gt;</p>');
});

test("hidden text is not read", () => {
  equal(textOf(h("p", {}, h("span", { "aria-hidden": "true" }, "x"), "y")), "y");
});

test("audit finds what has no name", () => {
  equal(audit(h("main", {}, h("button", {}))).map((finding) => finding.rule), ["A1"]);
  equal(audit(h("main", {}, h("h1", {}, "a"), h("h3", {}, "b"))).map((finding) => finding.rule), ["A5"]);
  equal(audit(h("div", { role: "dialog", "aria-labelledby": "gone" })).map((finding) => finding.rule), ["A6"]);
});

// node tools/render.mjs PATH [--member m-017] [--shed shd-14] [--locale en] [--env dev]
import { build, demo, load, setup } from "./lib.mjs";

build();
const path = process.argv[2] || "/loans";
const option = (name, fallback) => {
  const index = process.argv.indexOf(`--${name}`);
  return index < 0 ? fallback : process.argv[index + 1];
};
const { store } = await demo(option("member", "m-017"), option("shed", "shd-14"), option("locale", "en"));
const { render } = await load("src/view/render.js");
const entry = path.startsWith("/kiosk") ? (await load("src/app/kiosk.js")).kioskView : (await load("src/app/main.js")).view;
console.log(render(entry(path, store.get(), setup(option("env", "dev")))));

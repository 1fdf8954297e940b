import { build, files } from "./lib.mjs";

build();
console.log(`built: ${files("out/src", ".js").length} modules, ${files("out/tests", ".test.js").length} test files`);

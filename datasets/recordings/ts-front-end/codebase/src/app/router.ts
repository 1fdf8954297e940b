export interface Match {
  name: string;
  params: Record<string, string>;
}
interface Route {
  name: string;
  parts: string[];
}

const routes: Route[] = [];

/** Add a route such as `/loans/:id`. The first that fits wins. */
export function route(name: string, pattern: string): void {
  routes.push({ name, parts: pattern.split("/").filter(Boolean) });
}

export function match(path: string): Match | null {
  const parts = path.split("?")[0].split("/").filter(Boolean);
  for (const each of routes) {
    if (each.parts.length !== parts.length) continue;
    const params: Record<string, string> = {};
    const fits = each.parts.every((part, index) => {
      if (!part.startsWith(":")) return part === parts[index];
      params[part.slice(1)] = parts[index];
      return true;
    });
    if (fits) return { name: each.name, params };
  }
  return null;
}

export function href(name: string, params: Record<string, string> = {}): string {
  const found = routes.find((each) => each.name === name);
  if (!found) throw new Error(`no route ${name}`);
  return "/" + found.parts.map((part) => (part.startsWith(":") ? params[part.slice(1)] : part)).join("/");
}

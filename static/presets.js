// The links to presets and templates go with the model that is chosen in the form.

const select = document.getElementById("id_model");
const links = document.querySelectorAll("#beginning a[href]");

function follow() {
  if (!select.value) return;
  for (const link of links) {
    const url = new URL(link.href);
    url.searchParams.set("model", select.value);
    link.href = url.href;
  }
}

if (select && links.length) select.addEventListener("change", follow);

for(let o of document.querySelectorAll("[data-url]"))o.textContent=location.origin+"/mcp";
